"""What is left to do when a recipe's `main` has returned: it comes after all that is printed."""

from __future__ import annotations

from collections.abc import Callable

_left: list[Callable[[], int]] = []


def do_afterwards(step: Callable[[], int]) -> None:
    """Let `toolkit.entry.run_recipe` call it after `main`; it gives an exit code."""
    _left.append(step)


def forget_afterwards() -> None:
    """Drop what an earlier recipe of this process left."""
    _left.clear()


def finish() -> int:
    """Do what is left, in order; the first exit code that is not 0, else 0."""
    steps, _left[:] = list(_left), []
    codes = [step() for step in steps]
    return next((code for code in codes if code != 0), 0)
