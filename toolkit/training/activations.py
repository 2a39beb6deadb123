"""What forward and backward passes hold in memory besides the model, measured while they run."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass


@dataclass(frozen=True)
class Activations:
    """Bytes that one micro-batch needs besides the model, its gradients and the optimizer.

    Args:
        saved: what the forward pass keeps for the backward pass.
        peak: the most at once, with the tensors that live for a moment only.
    """

    saved: int
    peak: int


def measure_activations(
    model: nn.Module, device: torch.device, compute: Callable[[], Any]
) -> Activations:
    """Call `compute`, forward and backward passes of a model, and say what it needed.

    On a GPU its allocator knows the peak; elsewhere tensors are followed, so that what single
    operations need for themselves is not in it, nor what the allocator leaves unused between them.
    """
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        with count_saved_tensors(model) as saved:
            compute()
        return Activations(saved.bytes, torch.cuda.max_memory_allocated(device) - before)
    with LiveMemory(model) as live, count_saved_tensors(model) as saved:
        compute()
    return Activations(saved.bytes, live.peak)


@dataclass
class SavedTensors:
    """Bytes of the distinct storages that a forward pass keeps for the backward pass."""

    bytes: int = 0


@contextmanager
def count_saved_tensors(model: nn.Module) -> Iterator[SavedTensors]:
    """Count what is saved inside the block; the model's own parameters and buffers are not.

    What gradient checkpointing throws away is not there to be counted.
    """
    own, found = _storages(model), SavedTensors()
    seen: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet()

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own and storage not in seen:
            seen.add(storage)
            found.bytes += storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield found


class LiveMemory(TorchDispatchMode):
    """Follows the bytes of the tensors that operations inside its block make, until they go.

    ``peak`` is the most that was alive at once; the model's parameters, buffers and gradients that
    are there before are not counted.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._own = _storages(model)
        self._alive: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Called by torch for every operation."""
        result = func(*args, **(kwargs or {}))
        for tensor in _tensors(result):
            self._follow(tensor)
        return result

    def _follow(self, tensor: Tensor) -> None:
        if is_traceable_wrapper_subclass(tensor):  # it has no memory of its own
            return
        storage = tensor.untyped_storage()
        if storage in self._alive or storage.data_ptr() in self._own:
            return
        self._alive.add(storage)
        size = storage.nbytes()
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._gone, size)

    def _gone(self, size: int) -> None:
        self.now -= size


def _tensors(result: Any) -> Iterator[Tensor]:
    if isinstance(result, Tensor):
        yield result
    elif isinstance(result, tuple | list):
        for part in result:
            yield from _tensors(part)


def _storages(model: nn.Module) -> set[int]:
    """Addresses of what the model holds anyway."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    held = [*model.parameters(), *model.buffers(), *gradients]
    return {value.untyped_storage().data_ptr() for value in held}
