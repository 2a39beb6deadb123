"""Errors that say that memory has run out."""

from __future__ import annotations

from accelerate.utils.memory import should_reduce_batch_size


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch had no memory left, on whatever device."""
    return isinstance(error, RuntimeError) and (
        should_reduce_batch_size(error) or "out of memory" in str(error)
    )
