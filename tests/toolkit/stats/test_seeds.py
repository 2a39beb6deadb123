"""Seeds: t intervals and tests against scipy and statsmodels, nested draws by hand."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp, ttest_ind, ttest_rel
from statsmodels.stats.power import TTestIndPower, TTestPower

from toolkit.stats import (
    compare_paired_seeds,
    compare_seeds,
    nested_draws,
    paired_seeds_needed,
    seed_interval,
    seeds_needed,
)

scores = st.lists(st.integers(0, 1000).map(lambda k: k / 1000), min_size=2, max_size=8)


@given(scores)
def test_seed_interval_equals_scipy(values):
    interval = seed_interval(values)
    if min(values) == max(values):
        assert interval.low == interval.high == values[0]
        return
    expected = ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert interval.method == f"t over {len(values)} seeds 95%"


def test_seed_interval_by_hand():
    # Mean 2, standard deviation 1; t(0.975, 2) = 4.302653.
    interval = seed_interval([1.0, 2.0, 3.0])
    half = 4.302653 / math.sqrt(3)
    assert (interval.low, interval.high) == pytest.approx((2 - half, 2 + half), abs=1e-6)


@given(scores, scores)
def test_comparison_equals_welchs_test_of_scipy(first, second):
    assume(min(first) < max(first) and min(second) < max(second))
    compared = compare_seeds(first, second)
    expected = ttest_ind(first, second, equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert compared.difference == pytest.approx(np.mean(first) - np.mean(second))
    assert compared.p_value == pytest.approx(expected.pvalue)
    assert compared.degrees_of_freedom == pytest.approx(expected.df)
    assert (compared.interval.low, compared.interval.high) == pytest.approx(
        (interval.low, interval.high)
    )


@pytest.mark.parametrize("fixed", [[0.5, 0.5, 0.5], [0.1, 0.1]])  # a sum of 0.1s is not exact
def test_a_method_without_variance_leaves_the_degrees_of_freedom_to_the_other(fixed):
    values = [0.7, 0.72, 0.69, 0.74]
    expected = ttest_1samp(values, fixed[0])
    for compared in (compare_seeds(values, fixed), compare_seeds(fixed, values)):
        assert compared.p_value == pytest.approx(expected.pvalue)
        assert compared.degrees_of_freedom == pytest.approx(3)
    assert compared.difference < 0 < -compared.interval.high
    assert compared.interval.method == f"Welch t over {len(fixed)} and 4 seeds 95%"


def test_comparison_refuses_what_seeds_cannot_tell():
    with pytest.raises(ValueError, match="neither method varies"):
        compare_seeds([0.5, 0.5], [0.6, 0.6])
    for values in ([0.5], [], [0.5, math.nan], [0.5, math.inf]):
        for call in (seed_interval, lambda v: compare_seeds(v, [0.1, 0.2])):
            with pytest.raises(ValueError, match="at least two seeds"):
                call(values)


def test_nested_draws_take_a_mean_of_drawn_seeds_on_the_same_examples():
    # Two runs, one 10 above the other, on three samples of examples that score 100, 200, 300.
    draws = np.tile([[100.0], [110.0]], (1, 3000)) + np.repeat([0.0, 100.0, 200.0], 1000)
    nested = nested_draws(draws)
    assert nested.shape == (3000,)
    base = nested - np.repeat([100.0, 200.0, 300.0], 1000)
    values, counts = np.unique(base, return_counts=True)
    assert values.tolist() == [0.0, 5.0, 10.0]  # the lower twice, one of each, the higher twice
    assert counts / 3000 == pytest.approx([0.25, 0.5, 0.25], abs=0.03)
    assert np.array_equal(nested, nested_draws(draws))
    other = nested_draws(draws, seed=1) - np.repeat([100.0, 200.0, 300.0], 1000)
    assert abs(np.corrcoef(base, other)[0, 1]) < 0.06


def test_nested_draws_of_one_run_or_of_equal_runs_are_its_own():
    draws = np.random.default_rng(0).random((1, 50))
    assert np.array_equal(nested_draws(draws), draws[0])
    assert nested_draws(np.repeat(draws, 4, axis=0)) == pytest.approx(draws[0])


def test_nested_draws_of_seeds_are_independent_of_the_samples_of_the_same_seed():
    # Which of 4 runs is drawn first, and which of 4 examples a sample of the same seed holds first.
    runs = np.repeat(np.arange(4.0)[:, np.newaxis], 2000, axis=1)
    picked = nested_draws(runs, seed=3)
    samples = np.random.default_rng(3).integers(0, 4, (4, 2000)).mean(axis=0)
    assert abs(np.corrcoef(picked, samples)[0, 1]) < 3.5 / math.sqrt(2000)


@pytest.mark.parametrize("effect", [0.3, 1.0, 2.0])
@pytest.mark.parametrize(("alpha", "power"), [(0.05, 0.8), (0.01, 0.9)])
def test_seeds_needed_equal_statsmodels(effect, alpha, power):
    # Both methods with the standard deviation 1.
    first, second = np.array([-1.0, 0.0, 1.0]) + effect, [-1.0, 0.0, 1.0]
    expected = TTestIndPower().solve_power(effect, alpha=alpha, power=power)
    assert seeds_needed(first, second, alpha, power) == math.ceil(expected)
    assert seeds_needed(second, first, alpha, power) == math.ceil(expected)


def test_seeds_needed_against_a_method_without_variance():
    needed = seeds_needed([0.2, 1.2, 2.2], [0.0, 0.0, 0.0])
    expected = TTestPower().solve_power(effect_size=1.2, alpha=0.05, power=0.8)
    assert needed == math.ceil(expected)


def test_seeds_needed_at_the_ends():
    assert seeds_needed([0.0, 1.0], [0.0, 1.0]) is None
    assert seeds_needed([0.0, 1.0], [1e6, 1e6 + 1]) == 2
    # 16 * 2 s^2 / d^2 / 2 = 7.85 * 2 * 0.5 / 1e-6, as good as normal.
    many = seeds_needed([0.0, 1.0], [0.001, 1.001])
    assert many == pytest.approx(2 * 0.5 * 7.848879 / 1e-6, rel=1e-6)
    with pytest.raises(ValueError, match="neither method varies"):
        seeds_needed([0.5, 0.5], [0.6, 0.6])


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=2, max_size=8))
def test_comparison_of_pairs_equals_the_paired_test_of_scipy(pairs):
    first, second = np.array(pairs).T / 1000
    differences = (first - second).tolist()
    assume(np.ptp(differences) > 1e-9)
    compared = compare_paired_seeds(differences)
    expected = ttest_rel(first, second)
    interval = expected.confidence_interval(0.95)
    assert compared.p_value == pytest.approx(expected.pvalue)
    assert compared.degrees_of_freedom == expected.df
    assert (compared.interval.low, compared.interval.high) == pytest.approx(
        (interval.low, interval.high), abs=1e-12
    )
    assert compared.interval.method == f"paired t over {len(pairs)} seeds 95%"


@pytest.mark.parametrize("effect", [0.3, 1.2])
def test_seeds_needed_of_pairs_equal_statsmodels(effect):
    differences = np.array([-1.0, 0.0, 1.0]) + effect
    expected = TTestPower().solve_power(effect_size=effect, alpha=0.05, power=0.8)
    assert paired_seeds_needed(differences.tolist()) == math.ceil(expected)
    assert paired_seeds_needed([-1.0, 0.0, 1.0]) is None
