"""What a benchmark measures: several programs for one task, and how to see that they agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Program = Callable[[], Any]
"""One round of the work."""


@dataclass(frozen=True)
class Side:
    """One of the programs.

    Args:
        build: makes the program, from the folder that `Case.prepare` has filled; what it makes
            ready (loading a model) is not measured.
        positions: tokens, padding included, or images that one round computes.
    """

    build: Callable[[Path], Program]
    positions: int


@dataclass(frozen=True)
class Case:
    """Programs that do the same.

    Args:
        name: of the benchmark, and of its case where it has several.
        task: what is done, in words, with all sizes.
        sides: by name; ours among them.
        ours: the name of ours.
        prepare: writes what the sides are built from into a folder.
        check: from what each program gave in its first round, or from the folder: the largest
            difference and what was compared.
        rows: examples of one round.
        units: real tokens (without padding), images or new tokens of one round.
        unit: what these are called.
        flops: of one round without padding, from the folder; None where nobody can say.
        bytes_read: of weights in one round, where every step reads all of them for little work.
        goals: how many times as fast as a side, by its name, ours is meant to be.
        memory: sides whose peak memory is measured, each in a process of its own.
        memory_goal: the share of the first one's that ours may take.
        note: what a reader should know besides.
    """

    name: str
    task: str
    sides: Mapping[str, Side]
    ours: str
    prepare: Callable[[Path], None]
    check: Callable[[Mapping[str, Any], Path], Mapping[str, Any]]
    rows: int
    units: int
    unit: str = "tokens"
    flops: Callable[[Path], int | None] = lambda _: None
    bytes_read: int | None = None
    goals: Mapping[str, float] = field(default_factory=dict)
    memory: tuple[str, ...] = ()
    memory_goal: float | None = None
    note: str = ""
