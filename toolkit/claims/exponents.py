"""The exponent with which a cost grows: the slope of its logarithm over that of the size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolkit.stats.estimates import CONFIDENCE, Interval, method_name

DRAWS = 2000


@dataclass(frozen=True)
class Exponent:
    """The exponent b of cost = c * size^b, and its interval."""

    value: float
    interval: Interval

    def written(self) -> str:
        """ "1.97 [1.95, 1.99]"."""
        return f"{self.value:.2f} [{self.interval.low:.2f}, {self.interval.high:.2f}]"


def slope(sizes: ArrayLike, costs: ArrayLike) -> float:
    """The least squares b of log(cost) = log(c) + b log(size).

    Raises:
        ValueError: less than two different sizes, or what is not greater than 0.
    """
    x, y = np.asarray(sizes, dtype=float), np.asarray(costs, dtype=float)
    if len(x) != len(y) or len(set(x)) < 2 or (x <= 0).any() or not (y > 0).all():
        raise ValueError("needs costs above 0 at two different sizes above 0, one cost a size")
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def fit_exponent(
    sizes: Sequence[float], rounds: Sequence[Sequence[float]], seed: int = 0
) -> Exponent:
    """The exponent of the median cost, with a bootstrap interval over rounds (percentiles).

    Whole rounds are drawn: what disturbed a machine in a round disturbed all sizes of it.

    Args:
        rounds: in every round one cost a size [rounds, sizes].

    Raises:
        ValueError: as `slope`, or no rounds.
    """
    costs: NDArray[np.float64] = np.asarray(rounds, dtype=float)
    if costs.ndim != 2 or not len(costs):
        raise ValueError("needs rounds of one cost a size")
    value = slope(sizes, np.median(costs, axis=0))
    drawn = np.random.default_rng(seed).integers(0, len(costs), (DRAWS, len(costs)))
    medians = np.median(costs[drawn], axis=1)  # [draws, sizes]
    slopes = np.polyfit(np.log(np.asarray(sizes, dtype=float)), np.log(medians).T, 1)[0]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(slopes, [tail, 1 - tail])
    method = method_name(f"bootstrap over {len(costs)} rounds", CONFIDENCE)
    return Exponent(value, Interval(float(low), float(high), method))
