"""Accuracies: intervals and tests against scipy, hand computation and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from toolkit.stats import (
    PairedCounts,
    detectable_difference,
    exact_mcnemar,
    examples_needed,
    paired_counts,
    paired_difference_interval,
    wilson_interval,
)

cells = st.integers(0, 60)


def test_wilson_by_hand():
    # Wilson 1927 with z = 1.959964: centre (x + z^2/2) / (n + z^2), here x = 8, n = 10.
    z = norm.ppf(0.975)
    centre = (8 + z**2 / 2) / (10 + z**2)
    half = z / (10 + z**2) * math.sqrt(8 * 2 / 10 + z**2 / 4)
    interval = wilson_interval(8, 10)
    assert (interval.low, interval.high) == pytest.approx((centre - half, centre + half))
    assert (interval.low, interval.high) == pytest.approx((0.490162, 0.943318), abs=1e-6)
    assert interval.method == "wilson 95%"


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_scipy(case):
    successes, n = case
    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    interval = wilson_interval(successes, n)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0.0 <= interval.low <= successes / n <= interval.high <= 1.0


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_what_is_no_proportion(successes, n):
    with pytest.raises(ValueError, match="proportion"):
        wilson_interval(successes, n)


def test_paired_counts():
    counts = paired_counts([True, True, False, False, True], [True, False, True, False, False])
    assert counts == PairedCounts(both_right=1, only_first=2, only_second=1, both_wrong=1)
    assert (counts.n, counts.difference, counts.discordance) == (5, 0.2, 0.6)
    for first, second in ([True], [True, False]), ([], []):
        with pytest.raises(ValueError, match="same examples"):
            paired_counts(first, second)


@given(cells, cells, cells, cells)
def test_mcnemar_is_the_binomial_test_on_the_discordant_pairs(a, b, c, d):
    p = exact_mcnemar(PairedCounts(a, b, c, d))
    assert p == pytest.approx(1.0 if b + c == 0 else binomtest(b, b + c).pvalue)
    assert p == exact_mcnemar(PairedCounts(a, c, b, d))


def test_mcnemar_by_hand():
    # Five discordant pairs, all one way: 2 * (1/2)^5. Equal systems: no evidence at all.
    assert exact_mcnemar(PairedCounts(10, 5, 0, 3)) == pytest.approx(0.0625)
    assert exact_mcnemar(PairedCounts(10, 0, 0, 3)) == 1.0


def test_difference_interval_by_hand():
    # Bonett and Price: (b + 1) / (n + 2) = 16/102, (c + 1) / (n + 2) = 6/102.
    interval = paired_difference_interval(PairedCounts(60, 15, 5, 20))
    half = 1.959964 * math.sqrt((22 / 102 - (10 / 102) ** 2) / 102)
    expected = (10 / 102 - half, 10 / 102 + half)
    assert (interval.low, interval.high) == pytest.approx(expected, abs=1e-6)
    assert interval.excludes_zero()
    assert not paired_difference_interval(PairedCounts(60, 5, 5, 30)).excludes_zero()


@given(cells, cells, cells, st.integers(1, 60))
def test_difference_interval_is_antisymmetric_and_bounded(a, b, c, d):
    forward = paired_difference_interval(PairedCounts(a, b, c, d))
    backward = paired_difference_interval(PairedCounts(a, c, b, d))
    assert (forward.low, forward.high) == pytest.approx((-backward.high, -backward.low))
    assert -1.0 <= forward.low < forward.high <= 1.0


def test_examples_needed_reaches_the_stated_power():
    # Independent truth: the share of simulated test sets of that size in which the test rejects.
    counts = PairedCounts(both_right=700, only_first=120, only_second=80, both_wrong=100)
    n = examples_needed(counts)
    rng = np.random.default_rng(1)
    discordant = rng.multinomial(n, [0.7, 0.12, 0.08, 0.1], size=1000)[:, 1:3]
    p_values = [exact_mcnemar(PairedCounts(0, b, c, 0)) for b, c in discordant.tolist()]
    power = np.mean(np.array(p_values) < 0.05)
    assert power == pytest.approx(0.8, abs=0.04)


def test_examples_needed_by_hand_and_at_the_ends():
    # d = 0.04, D = 0.2: ((1.959964 sqrt(.2) + 0.841621 sqrt(.2 - .0016)) / .04)^2 = 979.8...
    assert examples_needed(PairedCounts(700, 120, 80, 100)) == 979
    assert examples_needed(PairedCounts(700, 80, 120, 100)) == 979
    assert examples_needed(PairedCounts(700, 100, 100, 100)) is None
    assert examples_needed(PairedCounts(5, 0, 0, 5)) is None
    # Always different: the exact test needs 2 * 0.5^k < 0.05, so six examples.
    assert examples_needed(PairedCounts(0, 1, 0, 0)) == 6
    assert exact_mcnemar(PairedCounts(0, 6, 0, 0)) < 0.05 < exact_mcnemar(PairedCounts(0, 5, 0, 0))
    assert examples_needed(PairedCounts(0, 1, 0, 0), alpha=0.01) == 8


@given(cells, st.integers(1, 60), st.integers(0, 60), cells)
def test_detectable_difference_inverts_examples_needed(a, b, c, d):
    counts = PairedCounts(a * 50, b * 50, c * 50, d * 50)
    difference = detectable_difference(counts)
    if difference is None:
        return
    # A set that shows exactly this difference at this discordance needs exactly its own size.
    discordance = counts.discordance
    z_alpha, z_power = norm.ppf(0.975), norm.ppf(0.8)
    root = z_alpha * math.sqrt(discordance) + z_power * math.sqrt(discordance - difference**2)
    assert (root / difference) ** 2 == pytest.approx(counts.n)


def test_nothing_can_be_detected_without_discordance_or_examples():
    assert detectable_difference(PairedCounts(50, 0, 0, 50)) is None
    assert detectable_difference(PairedCounts(0, 1, 0, 0)) is None
