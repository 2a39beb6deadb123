"""What a comparison found: rows, and the report they make."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

_SUBJECTS = {
    "hidden states": "forward",
    "attention maps": "forward",
    "outputs": "forward",
    "cache": "forward",
    "gradients": "gradients",
}
"""The stages that sum up a report, and under which name."""


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
    weights: Literal["checkpoint", "random"] = "checkpoint"
    """Trained ones, or random ones drawn for the comparison: equal, but nothing anybody uses."""
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

    @property
    def largest_difference(self) -> dict[str, float]:
        """The largest difference among values, gradients and trained models, where compared.

        `forward` (hidden states, attention maps, outputs with the loss, caches), `gradients` and
        `training` (losses, outputs and weights after it); infinite where one is, or is NaN.
        """
        found: dict[str, float] = {}
        for row in self.rows:
            subject = "training" if row.stage.startswith("after ") else _SUBJECTS.get(row.stage)
            if subject is not None:
                difference = math.inf if math.isnan(row.difference) else row.difference
                found[subject] = max(found.get(subject, 0.0), difference)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON (an infinite or undefined difference becomes None)."""
        rows = [
            {
                "stage": row.stage,
                "name": row.name,
                "difference": _or_none(row.difference),
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
            "weights": self.weights,
            "missing_weights": self.missing,
            "passed": self.passed,
            "largest_difference": {
                subject: _or_none(value) for subject, value in self.largest_difference.items()
            },
            "rows": rows,
        }


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
