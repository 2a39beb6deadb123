"""Measures as functions of summed statistics, and the units their values are written in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.stats import Interval

Score = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Sums of per-example statistics [..., k] -> scores [...]."""


class Unit(Enum):
    """How values of a measure are written."""

    SHARE = "share"
    """From 0 to 1, written in percent; differences in points."""
    SCORE = "score"
    """From 0 to 100, such as BLEU; differences in points."""
    NUMBER = "number"
    """Anything else, such as a perplexity."""


@dataclass(frozen=True)
class Measure:
    """A score of a test set that is a function of sums over its examples.

    Args:
        key: under which a run's summary holds it, such as "macro_f1".
        label: in tables and sentences, such as "macro F1".
        score: of the summed statistics.
        counts_right: the score is the share of examples that are right, so that Wilson's interval
            and McNemar's test apply.
        sacrebleu: the p value of sacrebleu's own paired bootstrap is to be quoted beside ours.
        needs_same_tokens: the score is per token, so that runs with other tokenizers have another
            measure: it is left out of their comparison instead of forbidding it.
    """

    key: str
    label: str
    unit: Unit
    score: Score
    higher_is_better: bool = True
    counts_right: bool = False
    sacrebleu: bool = False
    needs_same_tokens: bool = False

    def advantage(self, difference: float) -> float:
        """The difference of two values as what the first is better by."""
        return difference if self.higher_is_better else -difference

    def advantages(self, differences: Interval) -> Interval:
        """Likewise, of an interval of differences."""
        if self.higher_is_better:
            return differences
        return Interval(-differences.high, -differences.low, differences.method)


def ratio(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """First over second of two sums [..., 2]; 0 where the second is 0."""
    top, bottom = sums[..., 0], sums[..., 1]
    return np.divide(top, bottom, out=np.zeros(top.shape), where=bottom != 0)


def f1_of_counts(sums: NDArray[Any]) -> NDArray[np.float64]:
    """F1 from sums of right, predicted and true [..., 3]; 0 where nothing was predicted or true."""
    right, both = 2 * sums[..., 0], sums[..., 1] + sums[..., 2]
    return np.divide(right, both, out=np.zeros(right.shape), where=both != 0)


def exp_ratio(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp of first over second: perplexity of nats and tokens [..., 2]; infinite beyond floats."""
    with np.errstate(over="ignore"):
        return np.exp(ratio(sums))
