"""How much is computed, and how much this machine could compute.

Operations are counted by their shapes as they are executed: what is computed twice (gradient
checkpointing) counts twice, what is not computed (the gradients of frozen weights) does not count.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

import torch
from torch.utils.flop_counter import FlopCounterMode, _FlopCounterMode

from toolkit.flop_formulas import FORMULAS, FREE_NAMESPACES, UNCOUNTED

RATE_SECONDS = 0.3
"""What the measurement of a matmul rate may take."""
_SMALLEST, _LARGEST = 256, 4096


class FlopCounter(FlopCounterMode):
    """Counts the floating point operations of what runs inside its block.

    It changes nothing of what is computed; every operation takes some 50 microseconds longer.

    ``flops`` is None where an operation was met that nobody has a formula for; ``unknown`` names
    these.
    """

    def __init__(self) -> None:
        super().__init__(display=False, custom_mapping=FORMULAS)
        # Which module an operation belongs to is of no interest; to follow that, torch would put
        # hooks into the graph.
        self.mod_tracker: Any = _NoModules()
        self.unknown: set[str] = set()

    def __enter__(self) -> FlopCounter:
        super().__enter__()
        # torch has no place to say which kind of mode; this one is the same, and faster.
        self.mode.__class__ = _QuickMode
        return self

    @property
    def flops(self) -> int | None:
        """Of all operations so far."""
        return None if self.unknown else int(self.get_total_flops())

    def _count_flops(self, func_packet: Any, out: Any, args: Any, kwargs: Any) -> Any:
        """Called by torch after every operation."""
        if func_packet in self.flop_registry:
            try:
                return super()._count_flops(func_packet, out, args, kwargs)
            except Exception:  # a formula that does not know this use must not end the training
                self.unknown.add(str(func_packet))
        elif func_packet in UNCOUNTED or _namespace(func_packet) not in FREE_NAMESPACES:
            self.unknown.add(str(func_packet))
        return out


# What torch does not count either, and leaves to tensors of kinds of their own.
_OF_SHAPES = {
    "sym_is_contiguous", "is_contiguous", "is_strides_like_format", "is_non_overlapping_and_dense",
    "size", "sym_size", "stride", "sym_stride", "storage_offset", "sym_storage_offset", "numel",
    "sym_numel", "dim",
}  # fmt: skip


class _QuickMode(_FlopCounterMode):
    """torch asks at every operation whether it is made of others; the answer is always the same."""

    whole: ClassVar[dict[Any, bool]] = {}  # operations that are not, which can be counted at once

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        whole = self.whole.get(func)
        if whole is None:
            whole = self.whole[func] = (
                isinstance(func, torch._ops.OpOverload)
                and func.namespace == "aten"
                and func._overloadpacket.__name__ not in _OF_SHAPES
                and not torch._C._dispatch_has_kernel_for_dispatch_key(
                    func.name(), "CompositeImplicitAutograd"
                )
            )
        if not whole:
            return super().__torch_dispatch__(func, types, args, kwargs)
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        return self.counter._count_flops(func._overloadpacket, out, args, kwargs)


class _NoModules:
    parents = frozenset({"Global"})

    def __enter__(self) -> _NoModules:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def _namespace(func_packet: Any) -> str:
    """``aten`` of ``aten::mm``; nothing of what is no operator (a Triton kernel)."""
    return str(getattr(func_packet, "_qualified_op_name", "")).partition("::")[0]


def matmul_rate(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s of one large product of square matrices, the best of a few.

    With torch's present number of threads and precision of products. The matrices grow as far as
    `RATE_SECONDS` allow, at most to 4096 rows (200 MB in float32).
    """
    deadline, best, size = time.perf_counter() + RATE_SECONDS, 0.0, _SMALLEST
    matrix = torch.ones(size, size, device=device, dtype=dtype)
    _product_seconds(matrix)  # what the first one alone has to wait for
    while True:
        seconds = _product_seconds(matrix)
        best = max(best, 2 * size**3 / seconds)
        left = deadline - time.perf_counter()
        if size < _LARGEST and 2 * 8 * seconds < left:  # twice the size: eight times the work
            size *= 2
            matrix = torch.ones(size, size, device=device, dtype=dtype)
        elif seconds > left:
            return best


def read_rate(device: torch.device) -> float:
    """Bytes/s at which 400 MB are read from memory, the best of five; 400 MB fit into no cache."""
    values = torch.ones(100_000_000, device=device)
    best = 0.0
    for _ in range(5):
        started = time.perf_counter()
        float(values.sum())  # waits for a GPU, too
        best = max(best, values.nbytes / (time.perf_counter() - started))
    return best


def _product_seconds(matrix: torch.Tensor) -> float:
    if matrix.is_cuda:
        torch.cuda.synchronize(matrix.device)
    started = time.perf_counter()
    product = matrix @ matrix
    if product.is_cuda:
        torch.cuda.synchronize(matrix.device)
    return time.perf_counter() - started
