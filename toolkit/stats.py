"""What a test set can and cannot show: intervals, paired tests, how many examples it would take.

Every function works on plain numpy arrays of one entry per test example, so that two systems are
always compared on the same examples, pair by pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.metrics import f1_score
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.proportion import proportion_confint

CONFIDENCE = 0.95
POWER = 0.8
BOOTSTRAP_DRAWS = 10_000
# Draws are made in blocks so that many systems with many distinct answer patterns stay in memory.
_MAX_BLOCK_CELLS = 4_000_000


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


@dataclass(frozen=True)
class PairedCounts:
    """How two systems fare on the same examples (the 2x2 table behind McNemar's test)."""

    both_right: int
    only_first: int
    only_second: int
    both_wrong: int

    @property
    def n(self) -> int:
        """Number of examples."""
        return self.both_right + self.only_first + self.only_second + self.both_wrong

    @property
    def difference(self) -> float:
        """Accuracy of the first minus accuracy of the second."""
        return (self.only_first - self.only_second) / self.n

    @property
    def discordance(self) -> float:
        """Share of examples on which exactly one of the two is right."""
        return (self.only_first + self.only_second) / self.n


def _method(name: str, confidence: float) -> str:
    return f"{name} {100 * confidence:g}%"


def wilson_interval(successes: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval of a proportion (Wilson 1927), e.g. of an accuracy.

    Stays within [0, 1] and keeps its coverage near 0 and 1, where the textbook interval does not.
    Raises ValueError unless 0 <= successes <= n and n > 0.
    """
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(
            f"a proportion needs 0 <= successes <= n and n > 0, not {successes} of {n}"
        )
    low, high = proportion_confint(successes, n, alpha=1 - confidence, method="wilson")
    # At 0 and n the bound is exactly 0 or 1; the formula misses it by a rounding error.
    bounds = (0.0 if successes == 0 else float(low), 1.0 if successes == n else float(high))
    return Interval(*bounds, _method("wilson", confidence))


def accuracy_estimate(right: NDArray[np.bool_]) -> Estimate:
    """Accuracy with its Wilson interval from what a run got right, shape (examples,)."""
    interval = wilson_interval(int(right.sum()), right.size)
    return Estimate(float(right.mean()), interval)


def paired_counts(first_right: ArrayLike, second_right: ArrayLike) -> PairedCounts:
    """Count who is right on which example; both inputs are boolean, shape (examples,)."""
    first = np.asarray(first_right, dtype=bool)
    second = np.asarray(second_right, dtype=bool)
    if first.shape != second.shape or first.ndim != 1 or first.size == 0:
        raise ValueError(
            "a paired comparison needs the same examples, at least one, for both systems, "
            f"not shapes {first.shape} and {second.shape}"
        )
    return PairedCounts(
        both_right=int(np.sum(first & second)),
        only_first=int(np.sum(first & ~second)),
        only_second=int(np.sum(~first & second)),
        both_wrong=int(np.sum(~first & ~second)),
    )


def exact_mcnemar(counts: PairedCounts) -> float:
    """p value of the exact McNemar test: are the two systems equally often the only right one?

    Two-sided binomial test on the discordant pairs (McNemar 1947); 1.0 when there are none.
    """
    if counts.only_first + counts.only_second == 0:
        return 1.0
    table = [[counts.both_right, counts.only_first], [counts.only_second, counts.both_wrong]]
    return float(statsmodels_mcnemar(table, exact=True).pvalue)


def paired_difference_interval(counts: PairedCounts, confidence: float = CONFIDENCE) -> Interval:
    """Interval of the difference of two accuracies measured on the same examples.

    Bonett and Price's adjusted Wald interval (2012, "Adjusted Wald confidence interval for a
    difference of binomial proportions based on paired data"): one pseudo-example is added to each
    discordant cell, which holds the coverage where the plain Wald interval loses it.
    """
    z = norm.ppf(0.5 + confidence / 2)
    total = counts.n + 2
    first, second = (counts.only_first + 1) / total, (counts.only_second + 1) / total
    difference = first - second
    half_width = z * math.sqrt((first + second - difference**2) / total)
    return Interval(
        max(difference - half_width, -1.0),
        min(difference + half_width, 1.0),
        _method("bonett-price", confidence),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's (1979) step-down adjustment of a family of p values; same order as given.

    Written out because statsmodels' `multipletests` forces a garbage collection on every call.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    # The smallest p counts all hypotheses, the next one fewer, and none may fall below a smaller.
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(adjusted, 1.0).tolist()


def examples_needed(
    counts: PairedCounts, alpha: float = 1 - CONFIDENCE, power: float = POWER
) -> int | None:
    """Number of test examples at which McNemar's test would find the observed difference.

    Connor's sample size for paired proportions (1987, "Sample size for testing differences in
    proportions for the paired-sample design") taking the observed discordance and difference as the
    true ones. None when the observed difference is zero: then no number of examples would do.
    """
    difference, discordance = abs(counts.difference), counts.discordance
    if difference == 0.0:
        return None
    z_alpha, z_power = norm.ppf(1 - alpha / 2), norm.ppf(power)
    root = z_alpha * math.sqrt(discordance) + z_power * math.sqrt(discordance - difference**2)
    return math.ceil((root / difference) ** 2)


def detectable_difference(
    counts: PairedCounts, alpha: float = 1 - CONFIDENCE, power: float = POWER
) -> float | None:
    """Smallest true accuracy difference that a test set of this size finds with the given power.

    The same formula as `examples_needed`, solved for the difference at the observed discordance.
    None when it cannot be found at all: with too few discordant examples even a difference as
    large as the discordance itself (one system never the only right one) stays undetected.
    """
    z_alpha, z_power = norm.ppf(1 - alpha / 2), norm.ppf(power)
    discordance = counts.discordance
    # n d^2 = (a + z_power sqrt(D - d^2))^2 with a = z_alpha sqrt(D) is a quadratic in d once the
    # root is isolated: (n + z_power^2) d^2 - 2 a sqrt(n) d + a^2 - z_power^2 D = 0.
    a = z_alpha * math.sqrt(discordance)
    quadratic = counts.n + z_power**2
    linear = a * math.sqrt(counts.n)
    constant = a**2 - z_power**2 * discordance
    discriminant = linear**2 - quadratic * constant
    if discriminant < 0:
        return None
    difference = (linear + math.sqrt(discriminant)) / quadratic
    return difference if 0.0 < difference <= discordance else None


def macro_f1(
    labels: NDArray[np.integer], predictions: NDArray[np.integer], num_labels: int
) -> float:
    """Unweighted mean of F1 over ALL labels of the model, seen or not; NaN without examples.

    Both inputs have shape (examples,). A label that is neither true nor predicted counts 0, so the
    number does not rise when a class is missing from the test set (scikit-learn by itself averages
    over the labels it happens to see).
    """
    if labels.size == 0:
        return math.nan
    all_labels = np.arange(num_labels)
    return float(f1_score(labels, predictions, labels=all_labels, average="macro", zero_division=0))


def macro_f1_draws(
    labels: NDArray[np.integer],
    predictions: NDArray[np.integer],
    num_labels: int,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Macro F1 of every system on bootstrap samples of the examples, shape (systems, draws).

    `labels` has shape (examples,), `predictions` (systems, examples). All systems see the same
    samples, so differences between rows are paired (Efron and Tibshirani 1993; Koehn 2004).

    Drawing n examples with replacement only matters through how often each distinct pattern
    (label, prediction of system 1, prediction of system 2, ...) is drawn, and those counts are
    multinomial. Drawing the counts is the same bootstrap at a small part of its cost.
    """
    if predictions.ndim != 2 or labels.shape != predictions.shape[1:] or labels.size == 0:
        raise ValueError(
            "labels must have shape (examples,) and predictions (systems, examples) with at least "
            f"one example, not {labels.shape} and {predictions.shape}"
        )
    patterns, frequency = np.unique(np.vstack([labels, predictions]), axis=1, return_counts=True)
    rng = np.random.default_rng(seed)
    block = max(1, _MAX_BLOCK_CELLS // len(frequency))
    scores = np.empty((len(predictions), draws))
    for start in range(0, draws, block):
        size = min(block, draws - start)
        counts = rng.multinomial(labels.size, frequency / labels.size, size=size)
        scores[:, start : start + size] = _macro_f1_of_counts(patterns, counts, num_labels)
    return scores


def _macro_f1_of_counts(
    patterns: NDArray[np.integer], counts: NDArray[np.integer], num_labels: int
) -> NDArray[np.float64]:
    """Macro F1, shape (systems, draws), of pattern counts (draws, patterns).

    `patterns` has shape (1 + systems, patterns), the true label in its first row. A label that is
    neither true nor predicted scores 0, as in scikit-learn with `zero_division=0`.
    """
    weights = counts.astype(np.float64)
    is_label = np.eye(num_labels)[patterns[0]]
    support = weights @ is_label
    scores = np.empty((len(patterns) - 1, len(counts)))
    for system, predicted in enumerate(patterns[1:]):
        is_predicted = np.eye(num_labels)[predicted]
        true_positives = weights @ (is_label * is_predicted)
        denominator = support + weights @ is_predicted
        f1 = np.divide(
            2 * true_positives, denominator, out=np.zeros_like(support), where=denominator > 0
        )
        scores[system] = f1.mean(axis=1)
    return scores


def bootstrap_interval(
    draws: NDArray[np.float64], confidence: float = CONFIDENCE
) -> tuple[Interval, float]:
    """Percentile interval of bootstrap draws, shape (draws,), and their standard deviation.

    The standard deviation of the draws is the bootstrap estimate of the standard error.
    """
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail])
    interval = Interval(float(low), float(high), _method("percentile bootstrap", confidence))
    return interval, float(np.std(draws, ddof=1))
