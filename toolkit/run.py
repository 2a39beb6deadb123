"""A run: its directory, its processes, its seed, its log."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, set_seed

from toolkit.config import Invocation, RunConfig, save_config
from toolkit.console import notify
from toolkit.environment import command_line, describe_environment
from toolkit.errors import UserError

METRICS = "metrics.jsonl"


@dataclass
class Run:
    """What a recipe carries from its first line to its last."""

    recipe: str
    config: RunConfig
    directory: Path
    accelerator: Accelerator
    resumed: bool

    def log(self, event: dict[str, Any]) -> None:
        """Append one line to ``metrics.jsonl`` (main process only)."""
        if self.accelerator.is_main_process:
            with (self.directory / METRICS).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(event, ensure_ascii=False) + "\n")

    def forget_after(self, step: int) -> None:
        """Drop logged lines beyond ``step``: the resumed run will log them again."""
        path = self.directory / METRICS
        if self.accelerator.is_main_process and path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            kept = [line for line in lines if _step_of(line) <= step]
            path.write_text("".join(line + "\n" for line in kept), encoding="utf-8")

    def write_json(self, name: str, content: Any) -> None:
        """Write ``<run directory>/<name>`` whole or not at all (main process only)."""
        if self.accelerator.is_main_process:
            path = self.directory / name
            partial = path.with_name(path.name + ".partial")
            text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
            partial.write_text(text + "\n", encoding="utf-8")
            partial.rename(path)


def start_run(invocation: Invocation[Any], recipe: str) -> Run:
    """Start the processes' common work: device, seed, run directory.

    Raises:
        UserError: the launcher started more processes than are connected, the run directory exists
            already, or the run to resume is complete.
    """
    config: RunConfig = invocation.config
    accelerator = Accelerator(mixed_precision=config.train.mixed_precision)
    _check_processes(accelerator)
    resume = invocation.resume_from
    directory = resume if resume is not None else _new_directory(config, recipe, accelerator)
    if resume is not None and (directory / "summary.json").exists():
        raise UserError(
            f"--resume {directory}: this run is complete; its results are in summary.json"
        )
    run = Run(recipe, config, directory, accelerator, resumed=resume is not None)
    if accelerator.is_main_process and not run.resumed:
        save_config(config, directory / "config.yaml")
        run.write_json("environment.json", describe_environment() | {"command": command_line()})
        notify(f"run directory {directory}; if interrupted, continue with --resume {directory}")
    # The same seed everywhere: all processes must build the same weights.
    set_seed(config.seed)
    if accelerator.distributed_type == "DEEPSPEED":
        plugin = accelerator.state.deepspeed_plugin
        plugin.deepspeed_config["train_micro_batch_size_per_gpu"] = config.train.batch_size
    return run


def original_command(run: Run) -> str:
    """The command that started the run (not the one that resumed it)."""
    environment = json.loads((run.directory / "environment.json").read_text(encoding="utf-8"))
    return str(environment["command"])


def precision_of(accelerator: Accelerator) -> str:
    """``fp32``, ``bf16`` or ``fp16``: the precision of the forward pass."""
    return "fp32" if accelerator.mixed_precision == "no" else str(accelerator.mixed_precision)


def describe_device(accelerator: Accelerator) -> dict[str, Any]:
    """Where and how the run computes, for summaries and comparisons."""
    return {
        "device": accelerator.device.type,
        "threads": torch.get_num_threads(),
        "precision": precision_of(accelerator),
        "processes": accelerator.num_processes,
    }


def _check_processes(accelerator: Accelerator) -> None:
    """Unconnected copies would all train on everything and write over each other."""
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if started != accelerator.num_processes:
        raise UserError(
            f"{started} processes were started, but each of them works alone (accelerate connects "
            f"{accelerator.num_processes}). On CPU use: ACCELERATE_USE_CPU=true torchrun "
            f"--nproc_per_node {started} <recipe and options>"
        )


def _new_directory(config: RunConfig, recipe: str, accelerator: Accelerator) -> Path:
    """Make the run directory; exactly one process does, and all learn the outcome."""
    answer: list[Any] = [None, None]
    if accelerator.is_main_process:
        name = config.run_id or time.strftime("%Y%m%d-%H%M%S")
        parent = Path(config.output_dir) / recipe
        try:
            answer = [_make_exclusively(parent, name, retry=config.run_id is None), None]
        except FileExistsError:
            answer[1] = (
                f"{parent / name} exists already. Continue it with --resume {parent / name}, "
                "or choose another --run_id."
            )
        except OSError as error:
            answer[1] = f"cannot make the run directory {parent / name}: {error.strerror}"
    if accelerator.num_processes > 1:
        answer = broadcast_object_list(answer)
    directory, problem = answer
    if problem is not None:
        raise UserError(problem)
    return Path(directory)


def _make_exclusively(parent: Path, name: str, retry: bool) -> str:
    """``mkdir`` that fails on an existing folder, or (two runs in one second) counts up."""
    for number in range(1, 1000):
        path = parent / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
            return str(path)
        except FileExistsError:
            if not retry:
                raise
    raise FileExistsError(parent / name)


def _step_of(line: str) -> int:
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError):  # a line cut short by a kill
        return 1 << 62
