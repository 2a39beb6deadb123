"""The comparison over seeds and examples against the analysis of variance by hand."""

import math

import numpy as np
import pytest
from scipy.stats import norm, t

from toolkit.stats import (
    compare_paired_seeds,
    compare_paired_seeds_and_examples,
    compare_seeds,
    compare_seeds_and_examples,
    score_draws,
)

N = 300


def runs(seeds, generator, base=0.5, suits=0.3, seed_effect=0.02, noise=0.2):
    """Values of single examples, whose mean is the score [seeds, N]."""
    return (
        base
        + generator.normal(0, suits, (1, N))
        + generator.normal(0, seed_effect, (seeds, 1))
        + generator.normal(0, noise, (seeds, N))
    )


def draws_of(values, draws=20_000):
    statistics = [row[:, np.newaxis] for row in values]
    return score_draws(statistics, lambda sums: sums[..., 0] / N, draws=draws)


def test_variance_is_that_of_seeds_and_examples_less_what_both_hold():
    generator = np.random.default_rng(0)
    first, second = runs(3, generator), runs(5, generator, base=0.52)
    compared = compare_seeds_and_examples(
        first.mean(1).tolist(), second.mean(1).tolist(), draws_of(first), draws_of(second)
    )
    # Two-way random effects, from the tables themselves.
    of_seeds = [values.mean(1).var(ddof=1) / len(values) for values in (first, second)]
    of_examples = (first.mean(0) - second.mean(0)).var(ddof=1) / N
    interaction = [
        ((v - v.mean(0) - v.mean(1, keepdims=True) + v.mean()) ** 2).sum()
        / ((len(v) - 1) * (N - 1) * len(v) * N)
        for v in (first, second)
    ]
    variance = sum(of_seeds) + of_examples - sum(interaction)
    assert sum(interaction) > 0.1 * variance  # else the test would not see it
    freedom = variance**2 / (of_seeds[0] ** 2 / 2 + of_seeds[1] ** 2 / 4)
    difference = first.mean() - second.mean()
    assert compared.difference == pytest.approx(difference)
    assert compared.standard_error == pytest.approx(math.sqrt(variance), rel=0.02)
    assert compared.degrees_of_freedom == pytest.approx(freedom, rel=0.05)
    half = t.ppf(0.975, compared.degrees_of_freedom) * compared.standard_error
    expected = (difference - half, difference + half)
    assert (compared.interval.low, compared.interval.high) == pytest.approx(expected)
    assert compared.p_value == pytest.approx(
        2 * t.sf(abs(difference) / compared.standard_error, compared.degrees_of_freedom)
    )
    assert compared.interval.method == (
        "t over 3 and 5 seeds and bootstrap over examples 95%"
    )  # fmt: skip


def test_it_is_never_surer_than_seeds_or_examples_alone():
    generator = np.random.default_rng(1)
    for _ in range(40):
        first, second = (runs(3, generator, suits=0.05, seed_effect=0) for _ in range(2))
        scores = first.mean(1).tolist(), second.mean(1).tolist()
        draws = draws_of(first, 500), draws_of(second, 500)
        compared = compare_seeds_and_examples(*scores, *draws)
        over_examples = np.std(draws[0].mean(0) - draws[1].mean(0), ddof=1)
        over_seeds = compare_seeds(*scores).standard_error
        assert compared.standard_error >= max(over_seeds, over_examples) * (1 - 1e-12)


def test_methods_that_do_not_vary_are_compared_by_their_examples():
    generator = np.random.default_rng(2)
    first, second = (np.repeat(runs(1, generator), 3, axis=0) for _ in range(2))
    draws = draws_of(first, 2000), draws_of(second, 2000)
    compared = compare_seeds_and_examples(first.mean(1).tolist(), second.mean(1).tolist(), *draws)
    error = np.std(draws[0][0] - draws[1][0], ddof=1)
    difference = first.mean() - second.mean()
    assert compared.standard_error == pytest.approx(error)
    assert compared.degrees_of_freedom == math.inf
    assert compared.p_value == pytest.approx(2 * norm.sf(abs(difference) / error))


def test_without_any_variance_only_equal_is_equal():
    draws = np.full((2, 10), 0.5)
    assert compare_seeds_and_examples([0.5, 0.5], [0.5, 0.5], draws, draws).p_value == 1.0
    assert compare_seeds_and_examples([0.5, 0.5], [0.6, 0.6], draws, draws + 0.1).p_value == 0.0


def test_refuses_draws_of_other_runs():
    with pytest.raises(ValueError, match="draws of 3 and 2 runs"):
        compare_seeds_and_examples([0.5, 0.6], [0.5, 0.6], np.ones((3, 9)), np.ones((2, 9)))
    with pytest.raises(ValueError, match="at least two seeds"):
        compare_seeds_and_examples([0.5], [0.5, 0.6], np.ones((1, 9)), np.ones((2, 9)))


def test_pairs_of_one_seed_are_compared_by_their_differences():
    """What the seed does to both is no part of the difference; the variance of both by hand."""
    generator = np.random.default_rng(4)
    shared = runs(4, generator, seed_effect=0.1, noise=0.3)
    first = shared + generator.normal(0, 0.1, shared.shape) + generator.normal(0, 0.01, (4, 1))
    second = shared + generator.normal(0, 0.1, shared.shape)
    differences = first - second
    compared = compare_paired_seeds_and_examples(
        differences.mean(1).tolist(), draws_of(first) - draws_of(second)
    )
    of_seeds = differences.mean(1).var(ddof=1) / 4
    of_examples = differences.mean(0).var(ddof=1) / N
    apart = (
        differences - differences.mean(0) - differences.mean(1, keepdims=True) + differences.mean()
    )
    interaction = (apart**2).sum() / (3 * (N - 1) * 4 * N)
    variance = max(of_seeds + of_examples - interaction, of_seeds, of_examples)
    assert compared.difference == pytest.approx(differences.mean())
    assert compared.standard_error == pytest.approx(math.sqrt(variance), rel=0.02)
    freedom = variance**2 / (of_seeds**2 / 3)
    assert compared.degrees_of_freedom == pytest.approx(freedom, rel=0.08)
    unpaired = compare_seeds_and_examples(
        first.mean(1).tolist(), second.mean(1).tolist(), draws_of(first, 500), draws_of(second, 500)
    )
    assert compared.standard_error < 0.3 * unpaired.standard_error
    assert compared.interval.method.startswith("t over 4 pairs of one seed and bootstrap over")


def test_pairs_that_never_differ():
    draws = np.zeros((3, 10))
    compared = compare_paired_seeds_and_examples([0.0, 0.0, 0.0], draws)
    assert (compared.p_value, compared.interval.low, compared.interval.high) == (1.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="nothing to test over seeds"):
        compare_paired_seeds([0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="draws of 2 pairs of runs for 3 differences"):
        compare_paired_seeds_and_examples([0.0, 0.1, 0.2], draws[:2])
