"""Intervals and tests against statsmodels, scipy, brute force, hand computation and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, norm
from sklearn.metrics import f1_score
from statsmodels.stats.multitest import multipletests

from toolkit.stats import (
    PairedCounts,
    bootstrap_interval,
    detectable_difference,
    exact_mcnemar,
    examples_needed,
    holm,
    macro_f1,
    macro_f1_draws,
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


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1 and never falling: 0.04, 0.06, 0.06, 0.06.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.3]) == pytest.approx([0.3])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("scale", [1.0, 0.05])
def test_holm_equals_statsmodels(scale):
    p_values = np.random.default_rng(0).random(60) * scale
    p_values[10:20] = p_values[0]  # ties
    expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values.tolist()) == pytest.approx(expected)


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


def test_macro_f1_equals_its_definition_over_all_labels():
    rng = np.random.default_rng(4)
    labels, predictions = rng.integers(0, 4, (2, 90))
    right = [((labels == k) & (predictions == k)).sum() for k in range(4)]
    named = [(labels == k).sum() + (predictions == k).sum() for k in range(4)]
    expected = sum(2 * r / n for r, n in zip(right, named, strict=True)) / 5  # the fifth counts 0
    assert macro_f1(labels, predictions, num_labels=5) == pytest.approx(expected)


def test_bootstrap_scores_equal_scikit_learn_on_the_same_sample():
    # With one draw the multinomial counts are known from the seed: rebuild that very sample.
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, 60)
    predictions = rng.integers(0, 3, (2, 60))
    scores = macro_f1_draws(labels, predictions, num_labels=4, draws=1, seed=9)
    patterns, frequency = np.unique(np.vstack([labels, predictions]), axis=1, return_counts=True)
    counts = np.random.default_rng(9).multinomial(60, frequency / 60)
    sample = np.repeat(patterns, counts, axis=1)
    for system in range(2):
        expected = f1_score(
            sample[0], sample[1 + system], labels=range(4), average="macro", zero_division=0
        )
        assert scores[system, 0] == pytest.approx(expected)


def test_bootstrap_has_the_distribution_of_resampled_examples():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 200)
    predictions = np.stack([np.where(rng.random(200) < p, labels, 1 - labels) for p in (0.9, 0.8)])
    fast = macro_f1_draws(labels, predictions, 2, draws=4000)
    brute = np.empty((2, 400))
    for draw in range(400):
        rows = rng.integers(0, 200, 200)
        for system in range(2):
            brute[system, draw] = f1_score(labels[rows], predictions[system, rows], average="macro")
    assert fast.mean(axis=1) == pytest.approx(brute.mean(axis=1), abs=0.005)
    difference, slow_difference = fast[0] - fast[1], brute[0] - brute[1]
    assert difference.std() == pytest.approx(slow_difference.std(), rel=0.15)


def test_bootstrap_is_paired_and_repeatable():
    labels = np.array([0, 1] * 50)
    predictions = np.stack([labels, labels])
    scores = macro_f1_draws(labels, predictions, 2, draws=50)
    assert np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores, macro_f1_draws(labels, predictions, 2, draws=50))
    with pytest.raises(ValueError, match="shape"):
        macro_f1_draws(labels, labels, 2)


def test_bootstrap_in_blocks_gives_as_many_draws(monkeypatch):
    monkeypatch.setattr("toolkit.stats._MAX_BLOCK_CELLS", 20)
    labels = np.array([0, 1] * 50)
    scores = macro_f1_draws(labels, (1 - labels)[np.newaxis], 2, draws=23)
    assert scores.shape == (1, 23)
    assert np.all(scores == 0.0)


def test_bootstrap_interval_and_standard_error():
    draws = np.arange(1001) / 1000
    interval, standard_error = bootstrap_interval(draws)
    assert (interval.low, interval.high) == pytest.approx((0.025, 0.975))
    assert standard_error == pytest.approx(np.std(draws, ddof=1))


# Simulations with a fixed seed. The bounds are 93-97 % coverage and 5 % false positives, widened by
# three Monte-Carlo standard errors of a share measured on so many simulated test sets.
SIMULATIONS = 2000
SLACK = 3 * math.sqrt(0.05 * 0.95 / SIMULATIONS)


@pytest.mark.parametrize("n", [200, 2000])
@pytest.mark.parametrize("p", [0.05, 0.5, 0.85, 0.95])
def test_wilson_coverage(n, p):
    successes = np.random.default_rng(0).binomial(n, p, SIMULATIONS)
    intervals = [wilson_interval(int(k), n) for k in successes]
    coverage = np.mean([i.low <= p <= i.high for i in intervals])
    assert 0.93 - SLACK <= coverage <= 0.97 + SLACK


@pytest.mark.parametrize("n", [200, 2000])
@pytest.mark.parametrize(("only_first", "only_second"), [(0.08, 0.08), (0.12, 0.05), (0.05, 0.02)])
def test_paired_coverage_and_false_positives(n, only_first, only_second):
    rest = 1 - only_first - only_second
    table = [0.8 * rest, only_first, only_second, 0.2 * rest]
    simulated = np.random.default_rng(0).multinomial(n, table, size=SIMULATIONS)
    counts = [PairedCounts(*row) for row in simulated.tolist()]
    intervals = [paired_difference_interval(c) for c in counts]
    truth = only_first - only_second
    coverage = np.mean([i.low <= truth <= i.high for i in intervals])
    assert 0.93 - SLACK <= coverage <= 0.97 + SLACK
    if truth == 0:
        rejected = np.mean([exact_mcnemar(c) < 0.05 for c in counts])
        assert rejected <= 0.05 + SLACK


def test_bootstrap_coverage_and_false_positives_for_macro_f1():
    n, simulations = 400, 500
    rng = np.random.default_rng(0)
    slack = 3 * math.sqrt(0.05 * 0.95 / simulations)
    covered = rejected = 0
    for _ in range(simulations):
        labels = (rng.random(n) < 0.4).astype(int)
        # Right with probability 0.8 whatever the label: precision and recall follow by hand.
        predictions = np.where(rng.random((2, n)) < 0.8, labels, 1 - labels)
        draws = macro_f1_draws(labels, predictions, 2, draws=500, seed=int(rng.integers(2**31)))
        interval, _ = bootstrap_interval(draws[0])
        truth = (2 * 0.32 / (0.4 + 0.44) + 2 * 0.48 / (0.6 + 0.56)) / 2
        covered += interval.low <= truth <= interval.high
        difference, _ = bootstrap_interval(draws[0] - draws[1])
        rejected += difference.excludes_zero()
    assert 0.93 - slack <= covered / simulations <= 0.97 + slack
    assert rejected / simulations <= 0.05 + slack
