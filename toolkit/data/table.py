"""Columns as they were read, and where every row stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Table:
    """Columns of equal length. `places[i]` says where row i stands: "file, line 7"."""

    columns: dict[str, list[Any]]
    source: str
    unit: str  # what `positions` counts: "line" or "row"
    positions: Sequence[int]
    class_names: dict[str, list[str]] = field(default_factory=dict)  # of columns that declare them

    def __len__(self) -> int:
        return len(self.positions)

    def place(self, row: int) -> str:
        """Where row `row` (0-based) stands, for messages."""
        return f"{self.source}, {self.unit} {self.positions[row]}"
