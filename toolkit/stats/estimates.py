"""What every room of this package returns: intervals, and numbers with theirs."""

from __future__ import annotations

from dataclasses import dataclass

CONFIDENCE = 0.95
POWER = 0.8


@dataclass(frozen=True)
class Interval:
    """A two-sided interval; `method` names how it was computed, such as "wilson 95%"."""

    low: float
    high: float
    method: str

    def excludes_zero(self) -> bool:
        """True when zero is not among the values the data leave possible."""
        return self.low > 0.0 or self.high < 0.0


@dataclass(frozen=True)
class Estimate:
    """A number measured on the test examples, with its 95 % interval."""

    value: float
    interval: Interval
    standard_error: float | None = None


def method_name(name: str, confidence: float) -> str:
    """The name of an interval's method with its confidence: "wilson 95%"."""
    return f"{name} {100 * confidence:g}%"
