"""A number over seeds: its mean with a t interval, in the form findings write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.stats.seeds import mean_and_variance, seed_interval


@dataclass(frozen=True)
class Spread:
    """Mean of a number over seeds (or draws) and the 95 % t interval of this mean."""

    mean: float
    low: float
    high: float
    values: Sequence[float]

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least two finite values; raises ValueError for others."""
        interval = seed_interval(values)
        return cls(mean_and_variance(values)[0], interval.low, interval.high, list(values))

    def written(self, digits: int = 3, scale: float = 1.0, unit: str = "") -> str:
        """ "0.532 [0.51, 0.55]", to so many significant digits; `scale` 100 writes percent."""
        mean, low, high = (
            _significant(scale * x, digits).replace("-", "\N{MINUS SIGN}")
            for x in (self.mean, self.low, self.high)
        )
        return f"{mean}{unit} [{low}, {high}]"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        values = list(self.values)
        return {"mean": self.mean, "low": self.low, "high": self.high, "values": values}


def _significant(value: float, digits: int) -> str:
    """To so many significant digits; large numbers without an exponent."""
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if "e+" in text else text
