"""Accuracies: intervals, two systems on the same examples, how many examples it would take."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.proportion import proportion_confint

from toolkit.stats.estimates import CONFIDENCE, POWER, Estimate, Interval, method_name


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
    return Interval(*bounds, method_name("wilson", confidence))


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
        method_name("bonett-price", confidence),
    )


def examples_needed(
    counts: PairedCounts, alpha: float = 1 - CONFIDENCE, power: float = POWER
) -> int | None:
    """Number of test examples at which McNemar's test would find the observed difference.

    Connor's sample size for paired proportions (1987, "Sample size for testing differences in
    proportions for the paired-sample design") taking the observed discordance and difference as the
    true ones; at least as many as hold the discordant examples without which the exact test cannot
    reject. None when the observed difference is zero: then no number of examples would do.
    """
    difference, discordance = abs(counts.difference), counts.discordance
    if difference == 0.0:
        return None
    z_alpha, z_power = norm.ppf(1 - alpha / 2), norm.ppf(power)
    root = z_alpha * math.sqrt(discordance) + z_power * math.sqrt(discordance - difference**2)
    # The exact test finds nothing in fewer than this many discordant examples: 2 * 0.5^k < alpha.
    discordant = math.floor(math.log2(2 / alpha)) + 1
    return max(math.ceil((root / difference) ** 2), math.ceil(discordant / discordance))


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
