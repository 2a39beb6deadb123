"""The Accelerator of a run: devices, processes, precision, as the launcher and the settings say."""

from __future__ import annotations

import os

import torch
from accelerate import Accelerator
from accelerate.utils import (
    DistributedType,
    GradientAccumulationPlugin,
    ProjectConfiguration,
    is_torchao_available,
    is_transformer_engine_available,
)

from toolkit.config import RunConfig, TrainConfig
from toolkit.errors import UserError

_FP8_CAPABILITY = (8, 9)


def start_accelerator(config: RunConfig) -> Accelerator:
    """Connect the processes.

    Raises:
        UserError: fp16 or fp8 cannot be computed here; the launcher started more processes than are
            connected; FSDP is asked for without GPUs, or in its first version.
    """
    if _asked_precision(config.train) == "fp8":
        _check_fp8()
    # The engine divides by the loss terms of a whole step. Without this plugin accelerate would
    # divide once more by the number that `accelerate launch --gradient_accumulation_steps` sets.
    whole_steps = GradientAccumulationPlugin(num_steps=1)
    accelerator = Accelerator(
        mixed_precision=config.train.mixed_precision,
        gradient_accumulation_plugin=whole_steps,
        log_with=config.tracker,
        # accelerate insists on a folder; the tracker gets the run directory once there is one.
        project_config=ProjectConfiguration(logging_dir=config.output_dir),
    )
    if accelerator.mixed_precision == "fp16" and accelerator.device.type == "cpu":
        # accelerate would compute in fp32 and call it fp16.
        raise UserError("fp16 needs a GPU; on a CPU leave --train.mixed_precision out, or try bf16")
    _check_processes(accelerator)
    _check_sharding(accelerator)
    _tell_deepspeed(accelerator, config.train)
    return accelerator


def _asked_precision(train: TrainConfig) -> str:
    return train.mixed_precision or os.environ.get("ACCELERATE_MIXED_PRECISION", "no").lower()


def _check_fp8() -> None:
    """accelerate would compute in fp16 on an older GPU, and in bf16 without any."""
    missing = []
    if not torch.cuda.is_available():
        missing.append("there is no GPU here")
    elif (found := torch.cuda.get_device_capability()) < _FP8_CAPABILITY:
        missing.append(f"{torch.cuda.get_device_name()} has {found[0]}.{found[1]}")
    if not (is_torchao_available() or is_transformer_engine_available()):
        missing.append("neither package is installed")
    if missing:
        raise UserError(
            "fp8 needs a GPU of compute capability 8.9 or higher (Ada, Hopper) and the package "
            f"torchao or transformer_engine; {', and '.join(missing)}. Try --train.mixed_precision "
            "bf16, or leave it out."
        )


def _check_processes(accelerator: Accelerator) -> None:
    """Unconnected copies would all train on everything and write over each other."""
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if started == accelerator.num_processes:
        return
    connect = (
        "Start them with accelerate launch --config_file recipes/accelerate/ddp.yaml "
        f"--num_processes {started} <recipe and options>, without --cpu and ACCELERATE_USE_CPU."
        if torch.cuda.is_available()
        else f"On CPU use: ACCELERATE_USE_CPU=true torchrun --nproc_per_node {started} "
        "<recipe and options>"
    )
    raise UserError(
        f"{started} processes were started, but each of them works alone (accelerate connects "
        f"{accelerator.num_processes}). {connect}"
    )


def _check_sharding(accelerator: Accelerator) -> None:
    """accelerate would keep whole models on a CPU; of FSDP only the second version is read here."""
    asked = os.environ.get("ACCELERATE_USE_FSDP", "false").lower() == "true"
    divides = accelerator.distributed_type == DistributedType.FSDP
    if asked and not divides:
        raise UserError(
            "the launcher asks for FSDP, which divides models among GPUs, and none is used here: "
            "every process would hold the whole model. Launch with another file of "
            "recipes/accelerate/."
        )
    if divides and not accelerator.is_fsdp2:
        raise UserError(
            "the launcher asks for FSDP in its first version; set fsdp_version: 2, as "
            "recipes/accelerate/fsdp2.yaml does."
        )


def _tell_deepspeed(accelerator: Accelerator, train: TrainConfig) -> None:
    """The batch size, as no DataLoader shows it one, and how to clip, which it does itself."""
    if accelerator.distributed_type != DistributedType.DEEPSPEED:
        return
    plugin = accelerator.deepspeed_plugin
    if plugin.is_auto("train_micro_batch_size_per_gpu"):
        plugin.deepspeed_config["train_micro_batch_size_per_gpu"] = train.batch_size
    # 0 switches clipping off there.
    plugin.deepspeed_config["gradient_clipping"] = train.max_grad_norm or 0.0
