"""Draws against resampled rows and sacrebleu; intervals and p values by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest
from scipy.stats import ks_2samp, multinomial, norm
from statsmodels.stats.power import NormalIndPower

from toolkit.stats import (
    bootstrap_interval,
    bootstrap_p_value,
    difference_interval,
    differences_draws,
    examples_needed_bootstrap,
    p_value_error,
    sacrebleu_p_value,
    score_draws,
)


def ratio(sums):
    return sums[..., 0] / sums[..., 1]


def random_runs(runs, examples, k=2, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.gamma(2.0, size=(examples, k)) for _ in range(runs)]


def test_draws_are_the_scores_of_resampled_rows():
    runs = random_runs(3, 40)
    rows = np.random.default_rng(7).integers(0, 40, (25, 40))
    expected = [[ratio(run[sample].sum(0)) for sample in rows] for run in runs]
    assert score_draws(runs, ratio, draws=25, seed=7) == pytest.approx(np.array(expected))


def test_samples_depend_on_neither_runs_nor_metric_nor_blocks(monkeypatch):
    runs = random_runs(3, 40)
    draws = score_draws(runs, ratio, draws=25, seed=7)
    assert score_draws(runs[2:], ratio, draws=25, seed=7)[0] == pytest.approx(draws[2])
    wider = [np.hstack([run, run**2, run]) for run in runs]
    assert score_draws(wider, ratio, draws=25, seed=7) == pytest.approx(draws)
    monkeypatch.setattr("toolkit.stats.draws._MAX_BLOCK_CELLS", 160)
    assert score_draws(runs, ratio, draws=25, seed=7) == pytest.approx(draws)
    assert score_draws(runs, ratio, draws=11, seed=7) == pytest.approx(draws[:, :11])
    assert not np.allclose(score_draws(runs, ratio, draws=25, seed=8), draws)


def test_whole_clusters_are_drawn():
    [run] = random_runs(1, 30)
    clusters = np.random.default_rng(1).choice(["c", "a", "b", "d"], 30)
    labels = sorted(set(clusters))
    samples = np.random.default_rng(3).integers(0, 4, (20, 4))
    expected = [
        ratio(np.concatenate([run[clusters == labels[unit]] for unit in sample]).sum(0))
        for sample in samples
    ]
    drawn = score_draws([run], ratio, clusters=clusters, draws=20, seed=3)
    assert drawn[0] == pytest.approx(np.array(expected))
    # Every example a cluster of its own is the bootstrap over examples.
    alone = score_draws([run], ratio, clusters=np.arange(30), draws=20, seed=3)
    assert alone == pytest.approx(score_draws([run], ratio, draws=20, seed=3))


def test_a_run_that_is_not_finite_spoils_no_other():
    good, bad = random_runs(2, 40)
    bad = bad.copy()
    bad[5, 0] = np.inf
    draws = score_draws([bad, good], ratio, draws=25)
    assert np.isnan(draws[0]).all()
    assert draws[1] == pytest.approx(score_draws([good], ratio, draws=25)[0])


@pytest.mark.parametrize(
    "statistics",
    [[], [np.ones(5)], [np.ones((5, 2)), np.ones((4, 2))], [np.ones((0, 2))], [np.ones((5, 0))]],
    ids=["no run", "one axis", "other examples", "no example", "no statistic"],
)
def test_draws_refuse_what_is_no_table(statistics):
    with pytest.raises(ValueError, match="same examples"):
        score_draws(statistics, ratio, draws=2)


def test_draws_refuse_clusters_of_other_examples():
    with pytest.raises(ValueError, match="clusters"):
        score_draws(random_runs(1, 5), ratio, clusters=np.zeros(4), draws=2)


@pytest.mark.parametrize("metric", [BLEU(), CHRF()], ids=["BLEU", "chrF"])
@pytest.mark.parametrize("changed", [0.3, 0.7])
def test_draws_and_p_value_equal_sacrebleu(metric, changed):
    generator = np.random.default_rng(2)
    words = np.array(["the", "cat", "sat", "on", "a", "mat", "and", "saw", "that", "dog"])
    references = [" ".join(generator.choice(words, generator.integers(5, 15))) for _ in range(80)]

    def system(share):
        texts = [np.array(text.split()) for text in references]
        noisy = [np.where(generator.random(len(t)) < share, "x", t) for t in texts]
        return [" ".join(text) for text in noisy]

    systems = [system(0.3), system(changed)]
    named = [("baseline", systems[0]), ("other", systems[1])]
    test = PairedTest(named, {"m": metric}, [references], test_type="bs", n_samples=300)
    _, results = test()
    theirs = next(rows for name, rows in results.items() if name != "System")

    # sacrebleu draws rows from the generator of seed 12345: the same samples.
    statistics = [
        np.array(metric._extract_corpus_statistics(texts, [references]), dtype=float)
        for texts in systems
    ]

    def score(sums):
        return np.apply_along_axis(lambda s: metric._compute_score_from_stats(s).score, -1, sums)

    draws = score_draws(statistics, score, draws=300, seed=12345)
    scores = score(np.stack([rows.sum(0) for rows in statistics]))
    assert scores == pytest.approx([theirs[0].score, theirs[1].score], abs=1e-4)
    assert draws[1].mean() == pytest.approx(theirs[1].mean, abs=1e-4)
    difference = draws[1] - draws[0]
    p_value = sacrebleu_p_value(difference, scores[1] - scores[0])
    assert p_value == pytest.approx(theirs[1].p_value)
    if changed == 0.7:  # sure whichever way it is computed
        assert bootstrap_p_value(difference, scores[1] - scores[0]) == p_value == 1 / 301


def test_p_value_by_hand():
    # Distances from 1 are 1.5, 0.5, 0.5, 1.5: two at least 1, three of five with the added.
    draws = np.array([-0.5, 0.5, 1.5, 2.5])
    assert bootstrap_p_value(draws, 1.0) == pytest.approx(3 / 5)
    assert bootstrap_p_value(-draws, -1.0) == pytest.approx(3 / 5)
    assert bootstrap_p_value(draws + 1, 2.0) == pytest.approx(1 / 5)
    # A draw exactly at zero is as far from the difference as this is from zero, rounded or not.
    assert bootstrap_p_value(np.array([0.0, 0.1, 0.1, 0.1]), 0.1) == pytest.approx(2 / 5)
    assert bootstrap_p_value(np.array([0.3 - 0.1, 0.1, 0.1]), 0.1) == pytest.approx(2 / 4)
    # Sizes 0.5, 0.5, 1.5, 2.5 have the mean 1.25: only the last is more than 1 above it.
    assert sacrebleu_p_value(draws, 1.0) == pytest.approx(2 / 5)


def test_p_value_of_a_mean_is_that_of_the_normal_distribution():
    values = np.random.default_rng(0).normal(0.16, 1.0, 400)
    draws = score_draws([values[:, np.newaxis]], lambda s: s[..., 0] / 400, draws=20_000)[0]
    z = abs(values.mean()) / (values.std() / 20)
    assert 2 < z < 3
    p_value = bootstrap_p_value(draws, values.mean())
    assert p_value == pytest.approx(2 * norm.sf(z), abs=0.006)
    # Far from zero all draws have one sign, and sacrebleu counts one tail.
    assert sacrebleu_p_value(draws, values.mean()) == pytest.approx(p_value / 2, abs=0.003)


def test_a_run_does_not_differ_from_itself():
    run = random_runs(1, 40)[0]
    first, second = score_draws([run, run.copy()], ratio, draws=99)
    assert bootstrap_p_value(first - second, 0.0) == 1.0
    assert sacrebleu_p_value(np.zeros(99), 0.0) == pytest.approx(0.01)


def test_bootstrap_interval_and_standard_error():
    draws = np.arange(1001) / 1000
    interval, standard_error = bootstrap_interval(draws)
    assert (interval.low, interval.high) == pytest.approx((0.025, 0.975))
    assert standard_error == pytest.approx(np.std(draws, ddof=1))


def test_difference_interval_by_hand():
    # Of 199 draws 10 - 99 to 10 + 99, p < 0.05 allows at most 8 at least as far out: those 96 to 99
    # away. So 95 stays possible: the ninth largest distance.
    draws = np.arange(-89.0, 110.0)
    interval, standard_error = difference_interval(draws, 10.0)
    assert (interval.low, interval.high) == (-85.0, 105.0)
    assert interval.method == "centred bootstrap 95%"
    assert standard_error == pytest.approx(np.std(draws, ddof=1))
    # With too few draws no p value is below 0.05.
    assert difference_interval(draws[:10], 1.0)[0].low == -math.inf


@given(
    st.lists(st.integers(-50, 50), min_size=2, max_size=120),
    st.integers(-60, 60).filter(bool),
    st.sampled_from([0.8, 0.9, 0.95, 0.99]),
)
def test_difference_interval_leaves_zero_out_where_the_p_value_says_so(draws, difference, level):
    drawn = np.array(draws, dtype=float)
    interval, _ = difference_interval(drawn, float(difference), level)
    p_value = bootstrap_p_value(drawn, float(difference))
    # Shares of so few draws can be the level itself: then p is not below it.
    below = p_value < 1 - level - 1e-9
    assert interval.excludes_zero() == below


def test_examples_needed_equal_statsmodels():
    n = examples_needed_bootstrap(500, -0.02, 0.014)
    assert n == examples_needed_bootstrap(500, 0.02, 0.014)
    effect = 0.02 / (0.014 * math.sqrt(500))
    expected = NormalIndPower().solve_power(effect, ratio=0, alpha=0.05, power=0.8)
    assert n == pytest.approx(expected, abs=1)
    stricter = examples_needed_bootstrap(500, 0.02, 0.014, alpha=0.01, power=0.9)
    expected = NormalIndPower().solve_power(effect, ratio=0, alpha=0.01, power=0.9)
    assert stricter == pytest.approx(expected, abs=1)


def test_examples_needed_at_the_ends():
    assert examples_needed_bootstrap(500, 0.0, 0.014) is None
    assert examples_needed_bootstrap(500, 0.02, 0.0) == 1
    for n, error in ((0, 0.1), (5, -0.1), (5, math.nan), (5, math.inf)):
        with pytest.raises(ValueError, match="standard error"):
            examples_needed_bootstrap(n, 0.1, error)


def few_differ(examples=300, first_alone=9, second_alone=2):
    """Two runs that are right everywhere but where they differ; statistics of their shares."""
    first, second = np.ones(examples), np.ones(examples)
    second[:first_alone] = 0
    first[first_alone : first_alone + second_alone] = 0
    return [np.stack([right, np.ones(examples)], axis=-1) for right in (first, second)]


def exact_bootstrap_p(examples, first_alone, second_alone):
    """All that a bootstrap can draw: how many of either kind are in a sample (multinomial)."""
    difference = first_alone - second_alone
    shares = [first_alone / examples, second_alone / examples]
    pairs = [(i, j) for i in range(61) for j in range(61)]
    chances = multinomial.pmf(
        [[i, j, examples - i - j] for i, j in pairs], examples, [*shares, 1 - sum(shares)]
    )
    far = [abs(i - j - difference) >= difference for i, j in pairs]
    return float(chances[far].sum())


def test_p_value_where_few_examples_differ_is_that_of_all_possible_samples():
    first, second = few_differ()
    exact = exact_bootstrap_p(300, 9, 2)
    assert 0.04 < exact < 0.06  # around the mean of the draws it was 0.032 or 0.038 by chance
    for seed in range(3):
        draws = np.subtract(*score_draws([first, second], ratio, draws=4000, seed=seed))
        found = bootstrap_p_value(draws, 7 / 300)
        assert found == pytest.approx(exact, abs=4 * p_value_error(exact, 4000))
        # The interval says the same, to the end that is exactly zero.
        interval, _ = difference_interval(draws, 7 / 300)
        assert interval.excludes_zero() == (found < 0.05)


def test_many_draws_leave_little_to_chance():
    first, second = few_differ()
    exact = exact_bootstrap_p(300, 9, 2)
    found = [
        bootstrap_p_value(
            differences_draws([first, second], [([0], [1])], ratio, draws=100_000, seed=seed)[0],
            7 / 300,
        )
        for seed in range(6)
    ]
    assert np.ptp(found) < 0.005
    assert found == pytest.approx([exact] * 6, abs=4 * p_value_error(exact, 100_000))
    assert np.std(found, ddof=1) < 3 * p_value_error(exact, 100_000)


@pytest.mark.parametrize("kinds", [3, 400])
def test_many_draws_have_the_distribution_of_score_draws(kinds):
    """Means over two runs against one; few kinds of examples are drawn by kind, many one by one."""
    generator = np.random.default_rng(3)
    table = generator.gamma(2.0, size=(kinds, 3, 2))[generator.integers(0, kinds, 400)]
    runs = list(table.transpose(1, 0, 2))
    clusters = np.arange(400) // 2 if kinds == 400 else None
    found, turned = differences_draws(
        runs, [([0, 1], [2]), ([2], [0, 1])], ratio, clusters=clusters, draws=4000, seed=5
    )
    if kinds == 400:  # these share their samples
        assert turned == pytest.approx(-found)
    plain = score_draws(runs, ratio, clusters=clusters, draws=4000)
    expected = plain[:2].mean(axis=0) - plain[2]
    assert found.shape == (4000,)
    assert ks_2samp(found, expected).pvalue > 0.01


def test_monte_carlo_error_of_a_p_value():
    assert p_value_error(0.05, 10_000) == pytest.approx(math.sqrt(0.05 * 0.95 / 10_000))
    with pytest.raises(ValueError, match="0 draws"):
        p_value_error(0.05, 0)
