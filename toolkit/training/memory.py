"""Memory of training before it is spent: what the weights bring with them, and what is there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from toolkit.config import TrainConfig

_STATES = {"adamw": 2, "sgd": 1}
"""Numbers an optimizer keeps for every one that it trains: two moments; a momentum."""

ALLOCATOR_FACTOR, ALLOCATOR_ROOM = 1.5, 512 * 2**20
"""Main memory that activations take at worst: so many times theirs, and so many bytes more. Tensors
of all sizes come and go, and what lies between them stays taken. In 12 steps of a BERT of 6 layers
x 384, 1.6 GB of activations took 2.2 GB, 0.4 GB took 0.9 GB, and 0.36 GB under gradient
checkpointing 1.1 GB; with an allocator that gives everything back (MALLOC_MMAP_THRESHOLD_) they
took what they are."""


@dataclass(frozen=True)
class ModelMemory:
    """Bytes that a process holds from the first step to the last, whatever its batches.

    Args:
        average: of `--train.ema`.
        buckets: in which several processes exchange their gradients.
    """

    weights: int
    gradients: int
    optimizer: int
    average: int = 0
    buckets: int = 0

    @property
    def added_by_training(self) -> int:
        """All but the weights."""
        return self.gradients + self.optimizer + self.average + self.buckets

    @property
    def checkpoint(self) -> int:
        """Bytes of a checkpoint on disk, but for a few small files."""
        return self.weights + self.optimizer + self.average


def model_memory(model: nn.Module, train: TrainConfig, processes: int) -> ModelMemory:
    """Of a model that is trained as its parameters' ``requires_grad`` says; shared ones count once.

    Where processes divide the weights among them, it is this process's part.
    """
    parameters = [_local(p) for p in model.parameters()]
    trained = sum(_local(p).nbytes for p in model.parameters() if p.requires_grad)
    buffers = [_local(b) for b in model.buffers()]
    measured = sum(b.nbytes for b in buffers if b.is_floating_point())
    return ModelMemory(
        weights=sum(value.nbytes for value in [*parameters, *buffers]),
        gradients=trained,
        optimizer=_STATES[train.optimizer] * trained,
        average=0 if train.ema is None else trained + measured,
        buckets=trained if processes > 1 else 0,
    )


def available_memory(device: torch.device) -> int:
    """Bytes that this process can still get on a device.

    On a CPU the least of what the system has left and what control groups allow (cgroup v2: the
    limits of containers and batch systems), in equal parts for all processes on this machine.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return free + unused
    import psutil

    left = [int(psutil.virtual_memory().available), *_left_in_groups(Path("/"))]
    return min(left) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def taken_at_worst(activations: int, device: torch.device) -> int:
    """Bytes that are taken of a device for so many of activations at their most."""
    if device.type != "cpu":
        return activations
    return int(ALLOCATOR_FACTOR * activations) + ALLOCATOR_ROOM


def _left_in_groups(root: Path) -> list[int]:
    """Of every control group of this process that has a limit; files it can drop count as free."""
    membership = root / "proc/self/cgroup"
    if not membership.is_file():
        return []
    lines = membership.read_text(encoding="utf-8").splitlines()
    names = [line.removeprefix("0::") for line in lines if line.startswith("0::")]
    left = []
    for name in names:
        mounted = root / "sys/fs/cgroup"
        group = mounted / name.strip("/")
        for folder in [group, *group.parents]:
            if folder.is_relative_to(mounted) and (folder / "memory.max").is_file():
                limit = (folder / "memory.max").read_text(encoding="utf-8").strip()
                if limit != "max":
                    left.append(max(int(limit) - _used_in_group(folder), 0))
    return left


def _used_in_group(folder: Path) -> int:
    used = int((folder / "memory.current").read_text(encoding="utf-8"))
    for line in (folder / "memory.stat").read_text(encoding="utf-8").splitlines():
        if line.startswith("inactive_file "):
            used -= int(line.split()[1])
    return used


def _local(value: torch.Tensor) -> torch.Tensor:
    """This process's part of a tensor."""
    part: torch.Tensor = value.to_local() if hasattr(value, "to_local") else value
    return part
