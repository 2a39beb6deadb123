"""What a damaged run directory is answered with: which file, which row, what to do."""

import json

import numpy as np
import pytest

from toolkit.comparison.saved_run import load_run
from toolkit.errors import UserError

LABELS = [0, 1, 1, 0]
ANSWERS = [0, 1, 0, 0]


def test_a_good_run_is_read(make_run):
    run = load_run(make_run("A", LABELS, ANSWERS))
    assert (run.title, run.run_id, run.label_names) == ("A", "run-A", ["negative", "positive"])
    assert run.train_examples == 2000
    assert run.data_hash("test") == "c" * 64
    assert run.test.ids == ["id-0", "id-1", "id-2", "id-3"]
    names = ["negative", "positive"]
    assert run.test.truth == [names[label] for label in LABELS]
    assert run.test.fields["prediction"].tolist() == [names[answer] for answer in ANSWERS]
    assert run.test.fields["confidence"] == pytest.approx([0.8] * 4)
    assert run.test.fields["truth_probability"] == pytest.approx([0.8, 0.8, 0.2, 0.8])
    assert run.section("nothing") == {}


def test_unknown_keys_and_missing_extras_are_tolerated(make_run):
    changes = {"invented": 1, "data": {"hashes": None, "train_examples": None}, "run_id": None}
    folder = make_run("A", LABELS, ANSWERS, changes, text=None, probabilities=None, loss=None)
    run = load_run(folder)
    assert run.run_id == "A"
    assert run.test.inputs is None
    assert run.train_examples is None
    assert run.data_hash("test") is None
    assert set(run.test.fields) == {"prediction"}


def test_an_empty_text_stays_an_empty_text(make_run):
    run = load_run(make_run("A", LABELS, ANSWERS, text=["a", "", None, "NA"]))
    assert run.test.inputs == ["a", "", "", "NA"]


def refused(folder, *parts):
    with pytest.raises(UserError) as caught:
        load_run(folder)
    for part in parts:
        assert part in str(caught.value)


def test_no_directory_and_no_summary(make_run, tmp_path):
    refused(tmp_path / "nothing", "nothing is not a run directory", "summary.json")
    folder = make_run("A", LABELS, ANSWERS)
    (folder / "summary.json").unlink()
    refused(folder, "summary.json does not exist", "did not finish")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('{"schema_version": 1, "tit', ["summary.json is not valid JSON", "cut off"]),
        ("[]", ["no summary of a run"]),
        ('{"schema_version": 2}', ["schema_version 2", "reads 1"]),
        ('{"schema_version": 1}', ["'title' should be a str", "None"]),
        ('{"schema_version": 1, "title": "A", "task": 3}', ["'task' should be a str", "3"]),
    ],
)
def test_damaged_summaries(make_run, text, parts):
    folder = make_run("A", LABELS, ANSWERS)
    (folder / "summary.json").write_text(text)
    refused(folder, str(folder / "summary.json"), *parts)


def test_a_task_that_nobody_compares_is_named(make_run):
    folder = make_run("A", LABELS, ANSWERS, {"task": "speech-recognition"})
    refused(
        folder,
        f"{folder} solves the task 'speech-recognition', which this version cannot compare",
        "text-classification, ",
    )


def test_a_run_without_measured_values(make_run):
    folder = make_run("A", LABELS, ANSWERS, {"test": None})
    refused(folder, "summary.json: 'test' should be a dict, found None")


def test_a_summary_that_is_not_text(make_run):
    folder = make_run("A", LABELS, ANSWERS)
    (folder / "summary.json").write_bytes(b"\xff\xfe\x00garbage")
    refused(folder, "summary.json is not valid JSON")


def test_label_names_must_be_distinct(make_run):
    summary = {"data": {"label_names": ["good", "good"]}}
    refused(make_run("A", LABELS, ANSWERS, summary), "distinct", "good")


def test_missing_and_truncated_predictions(make_run):
    folder = make_run("A", LABELS, ANSWERS)
    path = folder / "predictions" / "test.parquet"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refused(folder, str(path), "cannot be read as parquet", "cut off")
    path.write_bytes(b"")
    refused(folder, str(path), "cannot be read as parquet")
    path.unlink()
    refused(folder, str(path), "does not exist")


def test_fewer_rows_than_the_summary_says(make_run):
    folder = make_run("A", LABELS, ANSWERS, {"data": {"test_examples": 5}})
    refused(folder, "test.parquet has 4 rows", "5 test examples")


@pytest.mark.parametrize(
    ("columns", "parts"),
    [
        ({"id": None}, ["no column 'id'", "Columns found"]),
        ({"id": ["a", "b", "a", "c"]}, ["'a' 2 times", "rows 0 and 2"]),
        ({"id": ["a", None, "b", "c"]}, ["row 1", "'id' is empty"]),
        ({"prediction": [0, 1, 2, 0]}, ["row 2", "'prediction' is 2", "from 0 to 1"]),
        ({"label": [0, 1, -1, 0]}, ["row 2", "'label' is -1"]),
        ({"prediction": [0.0, 1.0, 0.5, 0.0]}, ["'prediction' holds double", "label ids"]),
        ({"probabilities": [[0.5, 0.5]] * 3 + [[1.0]]}, ["row 3", "1 probabilities for 2 labels"]),
    ],
)
def test_damaged_predictions(make_run, columns, parts):
    refused(make_run("A", LABELS, ANSWERS, **columns), "test.parquet", *parts)


def test_no_rows(make_run):
    folder = make_run("A", LABELS, ANSWERS, {"data": {"test_examples": 0}})
    empty = {"id": np.array([], str), "label": np.array([], int), "prediction": np.array([], int)}
    import pyarrow
    import pyarrow.parquet

    path = folder / "predictions" / "test.parquet"
    pyarrow.parquet.write_table(pyarrow.table(empty), path)
    refused(folder, "test.parquet has no rows")


def test_the_summary_is_read_as_utf8(make_run):
    folder = make_run("微调", LABELS, ANSWERS)
    assert json.loads((folder / "summary.json").read_text(encoding="utf-8"))["title"] == "微调"
    assert load_run(folder).title == "微调"


def test_probabilities_that_are_none(make_run):
    folder = make_run("A", LABELS, ANSWERS, probabilities=[[5.0, -4.0]] + [[0.5, 0.5]] * 3)
    refused(folder, "row 0: probabilities [5.0, -4.0]", "from 0 to 1")
