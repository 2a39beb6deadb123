"""Runs that cannot be compared as they are: repeats of one run, values that are no numbers."""

import json
import os

import numpy as np
import pytest

from toolkit.comparison.compare import compare_runs
from toolkit.comparison.saved_run import load_run
from toolkit.errors import UserError
from toolkit.report import build_report
from toolkit.task_scores.predictions import NotFinite

N = 200
LABELS = np.array([0, 1] * (N // 2))


@pytest.fixture
def seeded(make_run):
    """`seeded(title, seed, wrong, folder, **summary)`: a run whose first answers are wrong."""

    def make(title, seed, wrong, folder=None, method=None, **summary):
        predictions = np.where(np.arange(N) < wrong, 1 - LABELS, LABELS)
        folder = folder or f"{title}-{seed}"
        config = {"seed": seed, "method": method or title}
        summary = {"seed": seed, "run_id": folder, **summary}
        return make_run(title, LABELS, predictions, summary, folder, config)

    return make


def ended(run, seconds):
    os.utime(run / "summary.json", (seconds, seconds))
    return run


def test_of_a_repeated_seed_the_newest_counts(seeded):
    old = ended(seeded("A", 1, 60, "old"), 1_000)
    new = ended(seeded("A", 1, 22, "new"), 2_000)
    runs = [seeded("A", 0, 20), new, old, seeded("A", 2, 24)]
    runs += [seeded("B", seed, 40 + seed) for seed in range(3)]
    comparison = compare_runs(runs, draws=50)
    best, other = comparison.rows
    assert best.method.seeds == other.method.seeds == [0, 1, 2]
    assert [run.folder.name for run in best.method.runs] == ["A-0", "new", "A-2"]
    assert best.values["accuracy"] == pytest.approx([0.9, 0.89, 0.88])
    assert best.estimates["accuracy"].value == pytest.approx(0.89)
    (caution,) = comparison.cautions
    assert caution == (
        "A, seed 1, was run 2 times with the same settings. Compared is the newest, "
        f"{new}; left out: {old}."
    )
    # An incomplete run is none, however new.
    torn = ended(seeded("A", 1, 10, "torn", status="interrupted"), 3_000)
    comparison = compare_runs([*runs, torn], draws=50)
    assert comparison.rows[0].method.runs[1].folder == new
    assert f"left out: {old}, {torn}." in comparison.cautions[0]


def test_a_run_and_its_repeat_alone_are_what_is_to_be_compared(seeded):
    comparison = compare_runs([seeded("A", 0, 20), seeded("A", 0, 22, "again")], draws=50)
    assert [row.values["accuracy"] for row in comparison.rows] == [[0.9], [0.89]]
    assert "same seed are shown apart" in comparison.cautions[0]


def test_titles_tell_repeats_apart(seeded):
    runs = {}
    for title, wrong in (("before", 30), ("after", 20)):
        for seed in range(3):
            run = seeded("A", seed, wrong + seed, f"{title}-{seed}")
            runs[run] = title
    comparison = compare_runs(list(runs), draws=50, titles=runs)
    assert [(row.title, row.method.seeds) for row in comparison.rows] == [
        ("after", [0, 1, 2]), ("before", [0, 1, 2]),
    ]  # fmt: skip
    assert comparison.cautions == []


def spoil(run, column, value):
    """Row 3 of a predictions file gets a value."""
    import pyarrow.parquet

    file = run / "predictions" / "test.parquet"
    rows = pyarrow.parquet.read_table(file).to_pylist()
    rows[3][column] = value
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return run


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_a_metric_that_is_no_number_is_refused_or_left_out_by_force(seeded, value):
    runs = [seeded("A", 0, 20), seeded("B", 0, 30)]
    bad = seeded("C", 0, 40, test={"accuracy": {"value": value}})
    with pytest.raises(UserError, match=r"test\.accuracy is") as refused:
        compare_runs([bad, *runs], draws=50)
    assert str(bad / "summary.json") in str(refused.value)
    assert "With --force the others are compared without it" in str(refused.value)
    comparison = compare_runs([bad, *runs], draws=50, force=True)
    assert [row.title for row in comparison.rows] == ["A", "B"]
    assert [found.folder for found in comparison.left_out] == [bad]
    assert comparison.forced[0].startswith(f"{bad} is left out: {bad / 'summary.json'}: test.acc")
    assert build_report(comparison).verdict.headline.startswith("Forced, not a fair comparison")
    # Who takes care of what is left out needs no banner.
    quiet = compare_runs([bad, *runs], draws=50, leave_out=True)
    assert (quiet.forced, [found.folder for found in quiet.left_out]) == ([], [bad])
    with pytest.raises(UserError, match="Less than two runs are left") as none_left:
        compare_runs([bad, runs[0]], draws=50, force=True)
    assert "test.accuracy is" in str(none_left.value)


def test_a_probability_that_is_no_number_is_refused_or_left_out_by_force(seeded):
    runs = [seeded("A", 0, 20), seeded("B", 0, 30)]
    bad = spoil(seeded("C", 0, 40), "probabilities", [float("nan"), 0.5])
    with pytest.raises(NotFinite):
        load_run(bad)
    with pytest.raises(UserError, match="row 3: 'probabilities' are") as refused:
        compare_runs([*runs, bad], draws=50)
    assert str(bad) in str(refused.value)
    comparison = compare_runs([*runs, bad], draws=50, force=True)
    assert [row.title for row in comparison.rows] == ["A", "B"]
    assert "row 3: 'probabilities'" in comparison.forced[0]


TASKS = {
    "language-modeling": (
        {"text": ["很好"] * 6, "nll": [9.0] * 6, "tokens": [4] * 6, "words": [3] * 6,
         "bytes": [9] * 6},
        "nll", {"word": "word"}, "perplexity", float(np.exp(9 / 4)),
    ),
    "translation": (
        {"source": ["很好"] * 6, "reference": ["very good it is"] * 6,
         "hypothesis": ["very good it is"] * 6, "loss": [1.0] * 6},
        "loss", {"target_language": "en"}, "bleu", 100.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
@pytest.mark.parametrize("task", list(TASKS))
def test_losses_that_are_no_numbers(make_run, tmp_path, task, value):
    columns, column, data, key, measured = TASKS[task]
    runs = []
    for name in "ABC":
        run = make_run(name, [0] * 6, [0] * 6, {"task": task, "data": data})
        summary = json.loads((run / "summary.json").read_text())
        summary["test"] = {key: {"value": measured}}
        summary["data"]["test_examples"] = 6
        (run / "summary.json").write_text(json.dumps(summary))
        import pyarrow.parquet

        table = {"id": [str(row) for row in range(6)], **columns}
        if name == "C":
            table[column] = [*columns[column][:3], value, *columns[column][4:]]
        pyarrow.parquet.write_table(pyarrow.table(table), run / "predictions" / "test.parquet")
        runs.append(run)
    with pytest.raises(UserError, match=f"row 3: '{column}' is {value}"):
        compare_runs(runs, draws=50)
    comparison = compare_runs(runs, draws=50, force=True)
    assert [row.title for row in comparison.rows] == ["A", "B"]
    assert f"row 3: '{column}' is {value}" in comparison.forced[0]


def test_a_file_that_cannot_be_read_is_refused_by_force_too(seeded):
    runs = [seeded("A", 0, 20), seeded("B", 0, 30), seeded("C", 0, 40)]
    (runs[2] / "predictions" / "test.parquet").write_bytes(b"PAR1")
    for force in (False, True):
        with pytest.raises(UserError, match="cannot be read as parquet"):
            compare_runs(runs, draws=50, force=force)


def test_runs_that_were_read_are_taken_as_they_are(seeded):
    runs = [load_run(seeded("A", 0, 20)), load_run(seeded("B", 0, 30))]
    for run in runs:
        (run.folder / "predictions" / "test.parquet").unlink()
    comparison = compare_runs(runs, draws=50)
    assert [row.values["accuracy"] for row in comparison.rows] == [[0.9], [0.85]]
    with pytest.raises(UserError, match="given twice"):
        compare_runs([runs[0], runs[0].folder], draws=50)
