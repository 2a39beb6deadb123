"""Several seeds a method: what a win must survive, and what a report says of few seeds."""

import numpy as np
import pytest
from scipy.stats import t, ttest_ind, ttest_rel

from toolkit.comparison.compare import compare_runs
from toolkit.comparison.pairs import ALPHA
from toolkit.report import as_json, build_report

N = 1000
LABELS = np.array([0, 1] * (N // 2))


@pytest.fixture
def methods(make_run):
    """`methods(A=[accuracies], B=[...])`: one run a seed; wrong examples are drawn by chance."""

    def make(same_errors=False, **accuracies):
        folders = []
        for number, (title, values) in enumerate(accuracies.items()):
            for seed, accuracy in enumerate(values):
                rng = np.random.default_rng([number, 0 if same_errors else seed])
                wrong = rng.permutation(N)[: round(N * (1 - accuracy))]
                predictions = LABELS.copy()
                predictions[wrong] = 1 - predictions[wrong]
                config = {"seed": seed, "method": title}
                folder = f"{title}-{seed}"
                summary = {"seed": seed, "run_id": folder}
                folders.append(make_run(title, LABELS, predictions, summary, folder, config))
        return folders

    return make


def test_means_and_intervals_over_seeds(methods):
    comparison = compare_runs(methods(A=[0.90, 0.91, 0.92], B=[0.80, 0.82, 0.81]), draws=2000)
    best, other = comparison.rows
    assert [best.title, other.title] == ["A", "B"]
    assert best.values["accuracy"] == pytest.approx([0.90, 0.91, 0.92])
    assert best.estimates["accuracy"].value == pytest.approx(0.91)
    half = t.ppf(0.975, 2) * np.std([0.90, 0.91, 0.92], ddof=1) / np.sqrt(3)
    assert (best.over_seeds.low, best.over_seeds.high) == pytest.approx((0.91 - half, 0.91 + half))
    pair = comparison.pairs[0]
    welch = ttest_ind([0.90, 0.91, 0.92], [0.80, 0.82, 0.81], equal_var=False)
    assert pair.deciding.value == pytest.approx(0.1)
    over = pair.deciding.over_seeds
    assert over.seeds.p_value == pytest.approx(welch.pvalue)
    assert over.both.standard_error >= max(over.seeds.standard_error, pair.deciding.standard_error)
    assert pair.deciding.p_value == over.both.p_value
    assert over.nested.low < 0.1 < over.nested.high
    assert pair.significant
    assert best.significantly_best


def test_a_win_must_survive_other_seeds(methods):
    """Far apart on the examples, but the seeds of B scatter as widely."""
    comparison = compare_runs(methods(A=[0.90, 0.91, 0.92], B=[0.80, 0.93, 0.86]), draws=2000)
    found = comparison.pairs[0].deciding
    assert found.p_examples < 0.01
    assert found.over_seeds.seeds.p_value > 0.2
    assert not comparison.pairs[0].significant
    words = build_report(comparison).verdict
    assert words.headline.startswith(
        "No winner in accuracy: this test set of 1,000 texts with 3 seeds"
    )
    assert "over seeds and examples)" in words.headline
    assert "seeds of each (80% power)" in words.headline
    assert "test texts" not in words.headline.split("would take")[1]


def test_a_win_must_survive_other_examples(methods):
    """All seeds agree, but on 1,000 examples a point is chance."""
    runs = methods(A=[0.900, 0.901, 0.900], B=[0.890, 0.891, 0.890], same_errors=True)
    comparison = compare_runs(runs, draws=2000)
    found = comparison.pairs[0].deciding
    assert found.over_seeds.seeds.p_value < 0.001
    assert found.p_examples > 0.2
    assert not comparison.pairs[0].significant
    assert "test texts (80% power)" in build_report(comparison).verdict.headline


def test_two_seeds_say_nothing_about_seeds(methods):
    comparison = compare_runs(methods(A=[0.90, 0.91], B=[0.80, 0.81]), draws=1000)
    found = comparison.pairs[0].deciding
    assert found.over_seeds is None
    assert found.test == "paired bootstrap over examples"
    assert any("Fewer than 3 seeds: A, B." in caution for caution in comparison.cautions)


def test_seeds_that_change_no_answer_are_one_run(methods):
    runs = methods(A=[0.90, 0.90, 0.90], B=[0.80, 0.80, 0.80], same_errors=True)
    comparison = compare_runs(runs, draws=1000)
    found = comparison.pairs[0].deciding
    assert found.test == "exact McNemar test"
    assert found.over_seeds is None
    assert [row.over_seeds for row in comparison.rows] == [None, None]
    assert not comparison.rows[0].seed_matters
    assert comparison.rows[0].estimates["accuracy"].interval.method == "wilson 95%"
    assert (
        "A, B give the same answers with every seed: the seeds count as one run."
        in comparison.cautions
    )


def test_a_method_without_chance_against_one_with_seeds(methods, make_run):
    """TF-IDF is the same for all seeds; the t interval then has the other's freedom."""
    runs = methods(A=[0.90, 0.91, 0.92])
    alike = methods(B=[0.85, 0.85, 0.85], same_errors=True)
    found = compare_runs([*runs, *alike], draws=1000).pairs[0].deciding
    assert found.over_seeds.seeds.degrees_of_freedom == pytest.approx(2)
    assert found.over_seeds.seeds.interval.low > 0


def test_one_run_against_three_is_tested_over_examples(methods):
    comparison = compare_runs(methods(A=[0.90, 0.91, 0.92], B=[0.80]), draws=1000)
    assert comparison.pairs[0].deciding.over_seeds is None
    assert any("Fewer than 3 seeds: B." in caution for caution in comparison.cautions)


def test_equal_methods_are_seldom_taken_for_different(methods):
    """Ten pairs without any difference: with a level of 5 % more than three would be strange."""
    rng = np.random.default_rng(1)
    wins = 0
    for number in range(10):
        a, b = (0.85 + 0.01 * rng.standard_normal(3) for _ in range(2))
        runs = methods(**{f"A{number}": a.tolist(), f"B{number}": b.tolist()})
        wins += compare_runs(runs, draws=300).pairs[0].p_holm < ALPHA
    assert wins <= 3


def test_the_table_says_how_many_seeds(methods):
    report = build_report(compare_runs(methods(A=[0.90, 0.91, 0.92], B=[0.80, 0.82, 0.81])))
    assert "as means over 3 seeds" in report.verdict.headline
    assert "over seeds and examples)" in report.verdict.headline
    assert (
        "p < 0.001; over seeds alone p < 0.001, over examples alone p < 0.001)"
        in report.verdict.details[0]
    )


def test_seeds_that_change_answers_but_no_value(methods):
    """Every seed has the same accuracy from other examples: the seeds have no variance to test."""
    runs = methods(A=[0.9, 0.9, 0.9], B=[0.8, 0.8, 0.8])
    comparison = compare_runs(runs, draws=1000)
    found = comparison.pairs[0].deciding
    assert found.over_seeds.seeds is None
    assert found.p_value == found.over_seeds.both.p_value < 0.05
    assert "over seeds alone –" in build_report(comparison).verdict.details[0]


def test_counts_of_seeds_are_means_and_agree_with_the_difference(methods):
    pair = compare_runs(methods(A=[0.90, 0.91], B=[0.88, 0.89, 0.87]), draws=200).pairs[0]
    assert pair.counts is None
    both, ours, theirs, neither = pair.mean_counts
    assert both + ours + theirs + neither == pytest.approx(N)
    assert (ours - theirs) / N == pytest.approx(pair.deciding.value)


def implementations(make_run, ours, theirs, **setting):
    """Runs of our classes and of HuggingFace's with the same settings; what seeds get wrong."""
    folders = []
    for name, counts in (("scratch", ours), ("hf", theirs)):
        for seed, wrong in counts.items():
            predictions = np.where(np.arange(N) < wrong, 1 - LABELS, LABELS)
            config = {"seed": seed, "implementation": name, "method": "full"}
            config |= setting if name == "hf" else {}
            folder = f"{name}-{seed}-{len(setting)}-{len(counts)}"
            summary = {"seed": seed, "run_id": folder}
            folders.append(make_run(name, LABELS, predictions, summary, folder, config))
    return folders


def test_two_implementations_are_compared_seed_by_seed(make_run):
    ours, theirs = {0: 100, 1: 200, 2: 150}, {0: 120, 1: 222, 2: 171}
    comparison = compare_runs(implementations(make_run, ours, theirs), draws=2000)
    over = comparison.pairs[0].deciding.over_seeds
    accuracies = [[1 - wrong / N for wrong in found.values()] for found in (ours, theirs)]
    expected = ttest_rel(*accuracies)
    assert over.paired
    assert over.seeds.p_value == pytest.approx(expected.pvalue)
    # What is wrong alike has no part in it: seeds differ by 10 points, the twins always by 2.
    assert over.both.p_value < 0.01
    assert comparison.pairs[0].significant
    assert ttest_ind(*accuracies, equal_var=False).pvalue > 0.5
    document = as_json(build_report(comparison))
    assert document["pairs"][0]["differences"]["accuracy"]["over_seeds"]["paired_by_seed"] is True
    assert any("scratch − hf: two impl" in note for note in document["statistics"]["notes"])


def test_other_methods_and_other_seeds_are_not_paired(make_run):
    ours, theirs = {0: 100, 1: 200, 2: 150}, {0: 120, 1: 222, 2: 171}
    other = implementations(make_run, ours, theirs, method="lora")
    over = compare_runs(other, draws=500).pairs[0].deciding.over_seeds
    assert not over.paired
    assert over.both.p_value > 0.3
    more = implementations(make_run, ours, theirs | {3: 110})
    assert not compare_runs(more[:3] + more[3:], draws=500).pairs[0].deciding.over_seeds.paired


def test_implementations_that_answer_alike_do_not_differ(make_run):
    wrong = {0: 100, 1: 200, 2: 150}
    comparison = compare_runs(implementations(make_run, wrong, wrong), draws=500)
    found = comparison.pairs[0].deciding
    assert (found.over_seeds.both.p_value, found.over_seeds.seeds) == (1.0, None)
    assert "Their values are the same." in build_report(comparison).verdict.details[0]


def test_implementations_with_other_seeds_are_told_apart(make_run):
    ours, theirs = {0: 100, 1: 200, 2: 150}, {0: 100, 1: 200}
    comparison = compare_runs(implementations(make_run, ours, theirs), draws=200)
    (caution,) = [text for text in comparison.cautions if "two implementations" in text]
    assert "scratch has seed 2, which the other lacks" in caution
    same = compare_runs(implementations(make_run, {4: 100}, {4: 120}), draws=200)
    assert not any("two implementations" in text for text in same.cautions)


def test_examples_never_make_a_difference_surer_than_seeds_alone(methods):
    """Few seeds that vary much, and many examples that vary little."""
    comparison = compare_runs(
        methods(A=[0.92, 0.95, 0.93], B=[0.85, 0.90, 0.86], C=[0.86, 0.88, 0.90],
                D=[0.84, 0.85, 0.91]), draws=2000,
    )  # fmt: skip
    for pair in comparison.pairs:
        found = pair.deciding.over_seeds
        assert found.both.p_value >= found.seeds.p_value
        assert found.both.interval.low <= found.seeds.interval.low
        assert found.both.interval.high >= found.seeds.interval.high
