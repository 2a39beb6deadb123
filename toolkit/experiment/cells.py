"""What an experiment consists of: methods (cells), each run once per seed."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from toolkit.config import RunConfig


@dataclass(frozen=True)
class CellRun:
    """One run: a recipe with its settings, seed among them.

    ``label`` names it among the runs of its experiment: "LoRA, seed 1", or "LoRA" where the file
    lists no seeds.
    """

    cell: str
    label: str
    recipe: Path
    module: ModuleType  # the recipe's, imported
    arguments: list[str]
    config: RunConfig

    @property
    def settings_of_cell(self) -> tuple[str, ...]:
        """The arguments that all seeds of the cell have in common."""
        return tuple(word for word in self.arguments if not word.startswith("--seed="))

    @property
    def command(self) -> str:
        """What one types to do this run alone."""
        return shlex.join(["accelerate", "launch", short_path(self.recipe), *self.arguments])


@dataclass(frozen=True)
class Cell:
    """A method with its runs, one per seed."""

    name: str
    title: str  # in the report
    runs: list[CellRun]


@dataclass(frozen=True)
class Experiment:
    """What an experiment file says; ``compare`` and ``learning_curve`` are names of cells.

    ``predictions`` are files of somebody else's predictions by their titles; ``target`` is the
    validation value of the time to target; ``seeded`` says whether any cell lists seeds.
    """

    file: Path
    title: str
    output: Path
    cells: list[Cell]
    compare: list[str]
    learning_curve: list[str]
    seeded: bool = False
    force: bool = False
    target: float | None = None
    predictions: dict[str, Path] = field(default_factory=dict)
    note: str | None = None

    def runs(self) -> list[CellRun]:
        """All runs: seeds outermost, so that the methods are measured interleaved in time.

        What a machine does besides in some hour then falls on all of them.
        """
        most = max(len(cell.runs) for cell in self.cells)
        return [cell.runs[i] for i in range(most) for cell in self.cells if i < len(cell.runs)]


def short_path(path: Path) -> str:
    """The path as seen from here, where it lies below: nobody else has our folders above."""
    absolute = path.absolute()
    below = absolute.is_relative_to(Path.cwd())
    return str(absolute.relative_to(Path.cwd())) if below else str(path)
