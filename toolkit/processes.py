"""What processes that train together agree on: one that goes another way makes the rest wait."""

from __future__ import annotations

from typing import TypeVar

from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object

Value = TypeVar("Value")


def decided_by_main(accelerator: Accelerator, value: Value) -> Value:
    """The main process's value, on all of them; collective.

    Args:
        value: anything that can be pickled; that of the other processes is not looked at.
    """
    if accelerator.num_processes == 1:
        return value
    shared: list[Value] = broadcast_object_list([value])
    return shared[0]


def any_process(accelerator: Accelerator, value: bool) -> bool:
    """Whether it is so in one of them; collective."""
    return value if accelerator.num_processes == 1 else any(gather_object([value]))


def first_problem(accelerator: Accelerator, problem: str | None) -> str | None:
    """What went wrong in the first process that has something to say, on all; collective."""
    if accelerator.num_processes == 1:
        return problem
    problems: list[str | None] = gather_object([problem])
    return next((found for found in problems if found is not None), None)
