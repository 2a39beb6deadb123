"""What a comparison found: rows, and the report they make."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ParityRow:
    """One comparison.

    Args:
        stage: what kind of value (`hidden states`, `gradients`, …).
        name: which one.
        difference: the largest absolute difference; infinite where shapes differ or one is missing.
        tolerance: the largest difference that still passes.
    """

    stage: str
    name: str
    difference: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """True within the tolerance; never for NaN and infinity."""
        return math.isfinite(self.difference) and self.difference <= self.tolerance


@dataclass
class ParityReport:
    """The comparison of one model with its counterpart."""

    model: str
    scratch_class: str
    huggingface_class: str
    attn_implementation: str
    parameters: int
    missing: list[str] = field(default_factory=list)
    """Weights the checkpoint does not hold, made equal at random before comparing."""
    rows: list[ParityRow] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True if there are rows and every one of them passed."""
        return bool(self.rows) and all(row.passed for row in self.rows)

    @property
    def failures(self) -> list[ParityRow]:
        """The rows that missed."""
        return [row for row in self.rows if not row.passed]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON (an infinite or undefined difference becomes None)."""
        rows = [
            {
                "stage": row.stage,
                "name": row.name,
                "difference": row.difference if math.isfinite(row.difference) else None,
                "tolerance": row.tolerance,
                "passed": row.passed,
            }
            for row in self.rows
        ]
        return {
            "model": self.model,
            "scratch_class": self.scratch_class,
            "huggingface_class": self.huggingface_class,
            "attn_implementation": self.attn_implementation,
            "parameters": self.parameters,
            "missing_weights": self.missing,
            "passed": self.passed,
            "rows": rows,
        }
