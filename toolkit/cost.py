"""What a run costs, for its summary: operations, energy, and what its speed may be compared by."""

from __future__ import annotations

from typing import Any

import torch
from accelerate import Accelerator

from toolkit.compute import matmul_rate
from toolkit.config import TrainConfig
from toolkit.run import Run
from toolkit.training.train_state import TrainState

_DTYPES = {"no": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def describe_cost(run: Run[Any], state: TrainState) -> dict[str, Any]:
    """The part of the ``training`` section that says what training by steps took.

    Measures what products of matrices this machine reaches; call it once, when all else is done.
    """
    flops = state.flops
    return cost_section(
        padding_policy(run.config.train, state),
        seconds=state.seconds,
        joules=state.joules,
        energy_source=state.energy_source,
        tokens=state.tokens or None,
        padded_tokens=state.padded_tokens or None,
        flops=flops,
        machine=None if flops is None else machine_rate(run.accelerator),
    )


def cost_section(
    padding: str | None,
    *,
    seconds: float,
    joules: float | None,
    energy_source: str | None,
    tokens: int | None = None,
    padded_tokens: int | None = None,
    flops: int | None = None,
    machine: float | None = None,
) -> dict[str, Any]:
    """What reports compare; None: not known.

    Args:
        padding: how batches are made; speeds of different ways must not be ranked.
        seconds: what operations and joules were spent in.
        tokens: real ones.
        padded_tokens: those that were computed.
        machine: FLOP/s that its products of matrices reach.
    """
    per_second = None if flops is None or not seconds else flops / seconds
    return {
        "padding": padding,
        "tokens": tokens,
        "padded_tokens": padded_tokens,
        "flops": flops,
        "flops_per_second": per_second,
        "machine_flops_per_second": machine,
        "utilisation": None if per_second is None or not machine else per_second / machine,
        "energy_joules": None if joules is None else round(joules, 3),
        "energy_source": None if joules is None else energy_source,
    }


def padding_policy(train: TrainConfig, state: TrainState) -> str | None:
    """How training made its batches, in words; None where it took no step."""
    if state.step == 0:
        return None
    if not state.tokens and not state.padded_tokens:
        return "images"
    if train.batch_tokens is not None:
        return "batches by tokens"
    return "grouped by length" if train.group_by_length and state.tokens else "random"


def machine_rate(accelerator: Accelerator) -> float | None:
    """FLOP/s of products of matrices, in the precision of training, by as many processes.

    Measured by the main process alone, times their number; None on the others, and where it cannot
    be measured.
    """
    if not accelerator.is_main_process:
        return None
    try:
        rate = matmul_rate(accelerator.device, _DTYPES[str(accelerator.mixed_precision)])
    except (KeyError, RuntimeError):  # a precision of its own kind; no memory left
        return None
    return rate * accelerator.num_processes
