"""Comparisons of runs whose every answer is known."""

import numpy as np
import pytest
from sklearn.metrics import f1_score
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from toolkit.comparison.compare import compare_runs
from toolkit.comparison.differences import MANY_DRAWS
from toolkit.errors import UserError
from toolkit.report import as_json, build_report

N = 400
LABELS = np.array([0, 1] * (N // 2))


def answers(right: int, shift: int = 0) -> np.ndarray:
    """Right on `right` examples starting at `shift` (round the end), wrong on all others."""
    is_right = np.zeros(N, dtype=bool)
    is_right[(np.arange(right) + shift) % N] = True
    return np.where(is_right, LABELS, 1 - LABELS)


def test_two_runs_by_hand(make_run):
    # A is right on 0..319, B on 40..339: only A 40, only B 20, both 280, neither 60.
    b = make_run("B", LABELS, answers(300, 40))
    a = make_run("A", LABELS, answers(320))
    comparison = compare_runs([b, a], draws=500)
    assert [row.title for row in comparison.rows] == ["A", "B"]
    assert [row.estimates["accuracy"].value for row in comparison.rows] == [0.8, 0.75]
    pair = comparison.pairs[0]
    assert (pair.counts.both_right, pair.counts.only_first) == (280, 40)
    assert (pair.counts.only_second, pair.counts.both_wrong) == (20, 60)
    found = pair.deciding
    assert found.p_examples == pytest.approx(mcnemar([[280, 40], [20, 60]], exact=True).pvalue)
    assert (found.value, found.test) == (pytest.approx(0.05), "exact McNemar test")
    assert found.over_seeds is None
    assert pair.p_holm == found.p_value == found.p_examples == comparison.rows[0].p_best_other
    assert found.interval.low < 0.05 < found.interval.high
    assert comparison.rows[0].significantly_best
    assert comparison.n == N
    assert comparison.view.facts == ["Labels in the test set: negative: 200, positive: 200."]
    assert comparison.forced == comparison.cautions == []


def test_macro_f1_and_its_interval(make_run):
    rng = np.random.default_rng(0)
    predictions = [np.where(rng.random(N) < p, LABELS, 1 - LABELS) for p in (0.9, 0.8)]
    runs = [make_run(str(i), LABELS, p) for i, p in enumerate(predictions)]
    comparison = compare_runs(runs, draws=500)
    expected = [f1_score(LABELS, p, average="macro") for p in predictions]
    assert [row.estimates["macro_f1"].value for row in comparison.rows] == pytest.approx(expected)
    for row in comparison.rows:
        found = row.estimates["macro_f1"]
        assert found.interval.low < found.value < found.interval.high
        assert 0.01 < found.standard_error < 0.03
    difference = comparison.pairs[0].differences["macro_f1"]
    assert difference.value == pytest.approx(expected[0] - expected[1])
    assert difference.interval.low < difference.value < difference.interval.high
    again = compare_runs(runs, draws=500)
    assert again.pairs == comparison.pairs


def test_holm_runs_over_all_pairs(make_run):
    rights = [330, 320, 300, 290]
    runs = [make_run(str(r), LABELS, answers(r, 15 * i)) for i, r in enumerate(rights)]
    comparison = compare_runs(runs, draws=50)
    raw = [pair.deciding.p_value for pair in comparison.pairs]
    assert len(raw) == 6
    expected = multipletests(raw, method="holm")[1]
    assert [pair.p_holm for pair in comparison.pairs] == pytest.approx(expected)
    # The best is measured against the second, everyone else against the best.
    assert [row.best_other for row in comparison.rows] == [1, 0, 0, 0]
    for place, row in enumerate(comparison.rows):
        assert row.p_best_other == comparison.pair(place, row.best_other).p_holm


def test_bold_only_where_the_best_beats_every_other(make_run):
    best = make_run("best", LABELS, answers(360))
    near = make_run("near", LABELS, answers(358, 2))
    far = make_run("far", LABELS, answers(250))
    rows = compare_runs([best, near, far], draws=50).rows
    assert [row.significantly_best for row in rows] == [False, False, False]
    rows = compare_runs([best, far], draws=50).rows
    assert [row.significantly_best for row in rows] == [True, False]


def test_equal_runs_are_a_tie_without_error(make_run):
    comparison = compare_runs(
        [make_run("A", LABELS, answers(300)), make_run("B", LABELS, answers(300))], draws=50
    )
    pair = comparison.pairs[0]
    assert pair.deciding.p_value == 1.0
    assert pair.counts.difference == 0.0
    assert not pair.significant


def test_rows_in_another_order_are_matched_by_id(make_run):
    a = make_run("A", LABELS, answers(320))
    order = np.random.default_rng(0).permutation(N)
    shuffled = make_run(
        "B",
        LABELS[order],
        answers(300, 40)[order],
        id=[f"id-{row}" for row in order],
        text=[f"t{row}" for row in order],
    )
    plain = make_run("C", LABELS, answers(300, 40), text=[f"t{row}" for row in range(N)])
    a_texts = make_run("D", LABELS, answers(320), text=[f"t{row}" for row in range(N)])
    one = compare_runs([a_texts, shuffled], draws=50).pairs[0].counts
    other = compare_runs([a_texts, plain], draws=50).pairs[0].counts
    assert one == other
    with pytest.raises(UserError, match="different texts under the same example ids"):
        compare_runs([a, plain])


def test_labels_in_another_order_are_matched_by_name(make_run):
    a = make_run("A", LABELS, answers(320))
    swapped = {"data": {"label_names": ["positive", "negative"]}}
    b = make_run("B", 1 - LABELS, 1 - answers(300, 40), swapped)
    comparison = compare_runs([a, b], draws=50)
    assert comparison.rows[1].estimates["accuracy"].value == 0.75
    assert comparison.pairs[0].counts.only_second == 20
    assert comparison.view.classes.names == ["negative", "positive"]
    assert any("matched by name" in caution for caution in comparison.cautions)


def test_three_labels_in_another_order_keep_their_meaning(make_run):
    names, order = ["差", "中", "好"], ["好", "差", "中"]
    labels = np.array([0, 1, 2] * 40)
    predictions = np.where(np.arange(120) < 90, labels, (labels + 1) % 3)
    number = np.array([order.index(name) for name in names])
    a = make_run("A", labels, predictions, {"data": {"label_names": names}})
    same = make_run("B", number[labels], number[predictions], {"data": {"label_names": order}})
    comparison = compare_runs([a, same], draws=50)
    assert [row.estimates["accuracy"].value for row in comparison.rows] == [0.75, 0.75]
    pair = comparison.pairs[0]
    assert (pair.counts.only_first, pair.counts.only_second, pair.counts.both_wrong) == (0, 0, 30)
    first, second = comparison.view.classes.predictions
    assert first.tolist() == second.tolist() == predictions.tolist()
    expected = f1_score(labels, predictions, average="macro")
    assert comparison.rows[1].estimates["macro_f1"].value == pytest.approx(expected)


def test_label_sets_that_differ_are_refused_with_what_is_missing(make_run):
    a = make_run("A", LABELS, answers(320))
    more = {"data": {"label_names": ["negative", "neutral", "positive"]}}
    b = make_run("B", LABELS * 2, answers(300) * 2, more)
    for force in (False, True):
        refused([a, b], f"only {b} has neutral.", "matched by name", force=force)
        refused([b, a], f"only {b} has neutral.", force=force)


def refused(runs, *parts, **options):
    with pytest.raises(UserError) as caught:
        compare_runs(runs, draws=50, **options)
    for part in parts:
        assert part in str(caught.value)


def test_label_names_that_differ_are_refused_even_when_forced(make_run):
    a = make_run("A", LABELS, answers(320))
    b = make_run("B", LABELS, answers(300), {"data": {"label_names": ["LABEL_0", "LABEL_1"]}})
    for force in (False, True):
        refused([a, b], "LABEL_0", "negative", "matched by name", force=force)


def test_another_truth_or_task_is_refused_even_when_forced(make_run):
    a = make_run("A", LABELS, answers(320))
    other_truth = LABELS.copy()
    other_truth[7] = 1 - other_truth[7]
    b = make_run("B", other_truth, answers(300))
    refused([a, b], "id-7", "disagree on the truth", force=True)
    c = make_run("C", LABELS, answers(300), {"task": "image-classification"})
    refused([a, c], "image-classification", "text-classification", force=True)


UNFAIR = {
    "content hash": ({"data": {"hashes": {"test": "d" * 64}}}, "content hashes of the test set"),
    "unfinished": ({"status": "interrupted"}, "not complete (status 'interrupted')"),
    "signature": (
        {"test": {"macro_f1": {"signature": "macro_f1|n:400|labels:2|average:weighted"}}},
        "measured macro_f1 differently",
    ),
    "selection": ({"training": {"selection": "last step"}}, "by different rules (A: highest"),
    "foreign predictions": (
        {"test": {"accuracy": {"value": 0.9}}},
        "reports a test accuracy of 0.9, its predictions give 0.750000",
    ),
}


@pytest.mark.parametrize("kind", UNFAIR)
def test_unfair_comparisons_are_refused_and_can_be_forced(make_run, kind):
    changes, reason = UNFAIR[kind]
    runs = [
        make_run("A", LABELS, answers(320)),
        make_run("B", LABELS, answers(300, 40), changes),
    ]
    refused(runs, "cannot be compared fairly", reason, "--force")
    comparison = compare_runs(runs, draws=50, force=True)
    assert len(comparison.forced) == 1
    assert reason in comparison.forced[0]
    assert comparison.pairs[0].counts.only_first == 40


def test_a_measure_that_is_no_number_is_refused_even_when_forced(make_run):
    a = make_run("A", LABELS, answers(320))
    for name, value in (("nan", float("nan")), ("none", None)):
        b = make_run(name, LABELS, answers(300), {"test": {"accuracy": {"value": value}}})
        for force in (False, True):
            refused([a, b], "summary.json: test.accuracy is", "not a number", force=force)


def test_versions_of_the_library_do_not_make_a_metric_another(make_run):
    changes = {"test": {"accuracy": {"signature": "accuracy|n:400|labels:2|scikit-learn:9.9"}}}
    runs = [
        make_run("A", LABELS, answers(320)),
        make_run("B", LABELS, answers(300, 40), changes),
    ]
    assert compare_runs(runs, draws=50).forced == []


def test_other_test_examples_are_refused_or_cut_to_the_common_ones(make_run):
    a = make_run("A", LABELS, answers(320))
    b = make_run("B", LABELS[:100], answers(320)[:100])
    refused([a, b], "different examples", "300", "--force")
    comparison = compare_runs([a, b], draws=50, force=True)
    assert comparison.n == 100
    c = make_run("C", LABELS, answers(300), id=[f"other-{row}" for row in range(N)])
    refused([a, c], "no test example in common", force=True)


def test_too_few_or_repeated_runs(make_run):
    a = make_run("A", LABELS, answers(320))
    refused([a], "at least two runs")
    refused([a, f"{a}/../{a.name}"], "given twice")


def test_equal_titles_are_told_apart(make_run):
    runs = [
        make_run("A", LABELS, answers(320), {"run_id": "one"}, folder="1"),
        make_run("A", LABELS, answers(300), {"run_id": "two"}, folder="2"),
        make_run("A", LABELS, answers(280), {"run_id": "two"}, folder="3"),
    ]
    titles = [row.title for row in compare_runs(runs, draws=50).rows]
    assert titles == ["A (one)", f"A ({runs[1]})", f"A ({runs[2]})"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"environment": {"precision": "bf16"}}, "must not be ranked"),
        ({"environment": {"gpus": ["A100"]}}, "training times and speeds must not be ranked"),
        ({"training": {"padding": "random"}}, "(grouped by length, random)"),
        ({"data": {"hashes": {"train": "e" * 64}}}, "not all trained on the same examples"),
        ({"data": {"hashes": {"validation": "e" * 64}}}, "not all selected on the same examples"),
    ],
)
def test_what_a_reader_must_mind(make_run, changes, words):
    runs = [
        make_run("A", LABELS, answers(320)),
        make_run("B", LABELS, answers(300, 40), changes),
    ]
    cautions = compare_runs(runs, draws=50).cautions
    assert len(cautions) == 1
    assert words in cautions[0]


def test_a_run_that_gives_only_one_answer_is_named(make_run):
    runs = [make_run("A", LABELS, answers(320)), make_run("B", LABELS, np.ones(N, dtype=int))]
    assert compare_runs(runs, draws=50).cautions == ["B answers 'positive' to every example."]


def smaller(make_run, title, size, right, **changes):
    summary = {
        "run_id": f"{title}-{size}",
        "model": {"name": f"model of {title}"},
        "data": {"train_examples": size, "hashes": {"train": str(size)}},
        **changes,
    }
    return make_run(title, LABELS, answers(right), summary, folder=f"{title}-{size}")


def test_learning_curve_joins_runs_of_the_same_method(make_run):
    main = [make_run("A", LABELS, answers(320)), make_run("B", LABELS, answers(300))]
    more = [smaller(make_run, "A", 1000, 300), smaller(make_run, "A", 500, 280)]
    comparison = compare_runs(main, learning_curve=[*more, main[0]], draws=50)
    (series,) = comparison.curve  # B was trained on one size only: no curve
    assert series.name == "A"
    assert [point.train_examples for point in series.points] == [500, 1000, 2000]
    assert [point.estimate.value for point in series.points] == [0.7, 0.75, 0.8]
    assert len(comparison.rows) == 2
    assert comparison.cautions == []
    assert comparison.curve_sizes() == [500, 1000, 2000]


def test_learning_curve_of_a_method_outside_the_table(make_run):
    main = [make_run("A", LABELS, answers(320)), make_run("B", LABELS, answers(300))]
    other = [smaller(make_run, "C", size, 200) for size in (500, 1000)]
    comparison = compare_runs(main, learning_curve=other, draws=50)
    assert [series.name for series in comparison.curve] == ["C"]
    impostor = {"model": {"name": "another model"}}
    same_title = [smaller(make_run, "A", size, 200, **impostor) for size in (500, 2000)]
    comparison = compare_runs(main, learning_curve=same_title, draws=50)
    assert all(series.name != "A" for series in comparison.curve)


def test_learning_curve_refuses_two_runs_at_one_place_and_unfair_ones(make_run):
    main = [make_run("A", LABELS, answers(320)), make_run("B", LABELS, answers(300))]
    again = make_run("A", LABELS, answers(310), folder="again")
    refused(
        main,
        "two runs with 2,000 training examples and seed 42",
        str(again),
        learning_curve=[again],
    )
    unfair = smaller(make_run, "A", 500, 280, data={"train_examples": 500, "hashes": {"test": "z"}})
    refused(main, "content hashes", learning_curve=[unfair])
    lost = smaller(make_run, "A", 100, 280, data={"train_examples": None})
    refused(main, "no data.train_examples", learning_curve=[lost])


def test_other_versions_of_the_code_are_named(make_run):
    changes = [
        {"environment": {"git": {"commit": commit * 8, "dirty": dirty}}}
        for commit, dirty in (("1234", False), ("abcd", True))
    ]
    runs = [
        make_run("A", LABELS, answers(320), changes[0]),
        make_run("B", LABELS, answers(300, 40), changes[1]),
    ]
    (caution,) = compare_runs(runs, draws=50).cautions
    assert "different versions of the code (12341234, abcdabcd+; +: changed since)" in caution


def test_a_point_of_another_setting_on_the_learning_curve_is_named(make_run):
    config = {"seed": 42, "train_size": 2000, "train": {"learning_rate": 0.1}}
    model = {"model": {"name": "same"}}
    main = [
        make_run("A", LABELS, answers(320), model, config=config),
        make_run("B", LABELS, answers(300)),
    ]
    other = config | {"train_size": 500, "train": {"learning_rate": 0.2}}
    summary = model | {"data": {"train_examples": 500}}
    more = make_run("A", LABELS, answers(280), summary, "A-500", other)
    (caution,) = compare_runs(main, learning_curve=[more], draws=50).cautions
    assert caution == (
        "The learning curve of A has a point with other settings (500 examples): "
        "train.learning_rate 0.2 instead of 0.1."
    )


def test_documents_count_on_a_learning_curve_of_language_models(make_run):
    def documents(number):
        return {"train_examples": None, "train_documents": number}

    model = {"model": {"name": "GPT-2"}}
    main = [
        make_run("A", LABELS, answers(320), model | {"data": documents(2000)}),
        make_run("B", LABELS, answers(300)),
    ]
    more = make_run("A", LABELS, answers(280), model | {"data": documents(500)}, "A-500")
    (series,) = compare_runs(main, learning_curve=[more], draws=50).curve
    assert [point.train_examples for point in series.points] == [500, 2000]
    assert [point.estimate.value for point in series.points] == [0.7, 0.8]


def tagged(make_run, name, wrong):
    """Sentences of one entity; it is missed in those given: F1, tested by the bootstrap."""
    import pyarrow.parquet

    sentences = 300
    columns = {
        "id": [str(row) for row in range(sentences)],
        "tokens": [["小", "明"]] * sentences,
        "gold": [["B-PER", "I-PER"]] * sentences,
        "predicted": [["O", "O"] if row in wrong else ["B-PER", "I-PER"]
                      for row in range(sentences)],
    }  # fmt: skip
    right = sentences - len(wrong)
    measured = {"entity_f1": {"value": 2 * right / (right + sentences)}}
    data = {"label_names": ["O", "B-PER", "I-PER"], "test_examples": sentences}
    run = make_run(name, LABELS, answers(1), {"task": "token-classification", "data": data,
                                              "test": measured})  # fmt: skip
    pyarrow.parquet.write_table(pyarrow.table(columns), run / "predictions" / "test.parquet")
    return run


def test_a_p_value_near_the_level_does_not_depend_on_the_seed_of_the_draws(make_run):
    runs = [tagged(make_run, "A", {0, 1}), tagged(make_run, "B", set(range(2, 11)))]
    found = [compare_runs(runs, draws=2000, seed=seed).pairs[0] for seed in range(4)]
    p_values = [pair.deciding.p_examples for pair in found]
    assert np.ptp(p_values) < 0.005
    assert {pair.deciding.draws for pair in found} == {MANY_DRAWS}
    assert len({pair.significant for pair in found}) == 1
    error = found[0].deciding.p_examples_error
    assert error == pytest.approx(np.sqrt(p_values[0] * (1 - p_values[0]) / MANY_DRAWS))
    for pair in found:
        assert pair.deciding.interval.excludes_zero() == (pair.deciding.p_examples < 0.05)
    # Far from the level the usual draws do.
    far = compare_runs([runs[0], tagged(make_run, "C", set(range(2, 60)))], draws=2000).pairs[0]
    assert far.deciding.draws == 2000
    document = as_json(build_report(compare_runs(runs, draws=2000)))
    (pair,) = document["pairs"]
    assert pair["differences"]["entity_f1"]["draws"] == MANY_DRAWS
    assert pair["differences"]["entity_f1"]["p_examples_monte_carlo_error"] < 0.001
    assert any("100,000" in note for note in document["statistics"]["notes"])
