"""`toolkit predict` as it is typed: files in, files out, pipes, and what can go wrong."""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolkit.prediction import open_model, predict

from .conftest import LETTERS, Finished

Command = Callable[..., Finished]
TEXTS = ["今天很好", "", "坏", "　", '房间,"好"\n早餐', "坏"]
NEW = ["prediction", "probability", "probability_差", "probability_中", "probability_好",
       "prediction_note"]  # fmt: skip


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    file = tmp_path / "reviews.csv"
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "review", "stars"])
        writer.writerows([[f"{n:03}", text, n] for n, text in enumerate(TEXTS)])
    return file


@pytest.fixture(scope="module")
def right(classifier: Path) -> list[dict[str, Any]]:
    return predict(open_model(str(classifier)), TEXTS).answers


def read(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".parquet":
        rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
        return rows
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        return list(json.loads(text))
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in text.split("\n")[:-1]]
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t" if file.suffix == ".tsv" else ","))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "jsonl"])
def test_a_file_with_its_columns_and_the_answers(
    toolkit_command: Command, classifier: Path, reviews: Path, right: list[Any], suffix: str
) -> None:
    output = reviews.with_name(f"out.{suffix}")
    done = toolkit_command("predict", classifier, "--file", reviews, "--output", output)
    assert done.status == 0
    assert done.out == ""
    assert "text-classification: 6 rows in" in done.err
    assert f"written to {output}" in done.err.replace("\n", "")
    assert "2 of 6 rows: no text" in done.err
    rows = read(output)
    assert [row["review"] for row in rows] == TEXTS
    assert [row["id"] for row in rows] == ["000", "001", "002", "003", "004", "005"]
    for row, answer in zip(rows, right, strict=True):
        assert row["prediction"] == answer["prediction"]
        if suffix in ("csv", "parquet"):
            assert list(row) == ["id", "review", "stars", *NEW]
            found = [float(row[f"probability_{label}"]) for label in "差中好"]
            assert (row["prediction_note"] or None) == answer.get("prediction_note")
        else:
            assert list(row)[:3] == ["id", "review", "stars"]
            found = list(row["probabilities"].values())
            assert list(row["probabilities"]) == ["差", "中", "好"]
            assert row.get("prediction_note") == answer.get("prediction_note")
        assert found == pytest.approx(list(answer["probabilities"].values()), abs=1e-6)
        assert math.isclose(float(row["probability"]), max(found))
    assert not list(reviews.parent.glob("*.partial"))


def test_other_kinds_of_input(toolkit_command: Command, classifier: Path, tmp_path: Path) -> None:
    rows = [{"n": 1.5, "text": "好"}, {"n": None, "text": None}, {"n": 3.0, "text": "坏"}]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps(rows).encode()))
    pq.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "c.parquet")
    (tmp_path / "d.tsv").write_text("n\ttext\n1.5\t好\n\t\n3.0\t坏\n", encoding="utf-8")
    (tmp_path / "e.csv").write_text("text\n好\n\n坏\n\n", encoding="gb18030")
    for name in ("a.jsonl", "b.json.gz", "c.parquet", "d.tsv", "e.csv"):
        output = tmp_path / f"{name}.jsonl"
        done = toolkit_command("predict", classifier, "--file", tmp_path / name, "--output", output)
        assert done.status == 0, done.err
        found = read(output)
        assert [row["text"] or "" for row in found] == ["好", "", "坏"], name
        assert all(row["prediction"] in "差中好" for row in found)
        if name in ("a.jsonl", "c.parquet"):
            assert [row["n"] for row in found] == [1.5, None, 3.0]


@settings(max_examples=15, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(st.lists(st.text(LETTERS + " 　\u2028\x0b", max_size=12), min_size=1, max_size=12))
def test_every_line_is_answered(
    toolkit_command: Command, classifier: Path, tmp_path: Path, lines: list[str]
) -> None:
    file, output = tmp_path / "lines.txt", tmp_path / "labels.txt"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    arguments = ("--file", file, "--output", output, "--overwrite", "--json")
    done = toolkit_command("predict", classifier, *arguments)
    assert done.status == 0
    labels = output.read_text(encoding="utf-8").split("\n")
    assert labels.pop() == ""
    records = [json.loads(line) for line in done.out.split("\n")[:-1]]
    assert [record["text"] for record in records] == lines
    assert [record["prediction"] for record in records] == labels
    assert len(labels) == len(lines)


def test_standard_input(toolkit_command: Command, classifier: Path, right: list[Any]) -> None:
    content = "今天很好\r\n\n坏".encode()
    for arguments in ((), ("--file", "-")):
        done = toolkit_command("predict", classifier, *arguments, stdin=content)
        rows = [json.loads(line) for line in done.out.splitlines()]
        assert [row["text"] for row in rows] == ["今天很好", "", "坏"]
        assert [row["prediction"] for row in rows] == [a["prediction"] for a in right[:3]]


def test_json_lines_on_standard_input(toolkit_command: Command, classifier: Path) -> None:
    content = '{"id": 7, "comment": "好"}\n\n{"id": 8}\n'.encode()
    rows = toolkit_command("predict", classifier, stdin=content).out.splitlines()
    assert [json.loads(row)["id"] for row in rows] == [7, 8]
    done = toolkit_command("predict", classifier, "--format", "lines", stdin=content)
    assert [json.loads(row)["text"] for row in done.out.splitlines()] == content.decode().split(
        "\n"
    )[:-1]


@pytest.mark.parametrize("second", ["今天很好", "[1, 2]"])
def test_texts_below_a_json_object_on_standard_input(
    toolkit_command: Command, classifier: Path, second: str
) -> None:
    content = f'{{"a": "好"}}\n{second}\n'.encode()
    error = toolkit_command("predict", classifier, stdin=content).error.replace("\n", " ")
    assert "standard input, line 2: " in error
    assert "the first line is a JSON object; if every line is a text: --format lines." in error
    asked = toolkit_command("predict", classifier, "--format", "jsonl", stdin=content).error
    assert "--format lines" not in asked
    done = toolkit_command("predict", classifier, "--format", "lines", stdin=content)
    rows = [json.loads(row)["text"] for row in done.out.splitlines()]
    assert rows == ['{"a": "好"}', second]


def test_the_table_does_not_break_its_headings(
    toolkit_command: Command, classifier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.console.console.width", 80)
    out = toolkit_command("predict", classifier, "今天很好，房间干净，" * 9, "").out
    heading = [cell.strip() for cell in out.splitlines()[1].strip("┃").split("┃")]
    assert heading == ["text", "prediction", "probability", "差", "中", "好", "note"]
    assert "no text" in out


def test_texts_on_the_command_line_are_shown(
    toolkit_command: Command, classifier: Path, right: list[Any]
) -> None:
    done = toolkit_command("predict", classifier, "今天很好", "[red]坏")
    assert "今天很好" in done.out
    assert "[red]坏" in done.out
    assert f"{right[0]['probability']:.1%}" in done.out
    shown = toolkit_command("predict", classifier, "今天很好", "--json").out
    assert json.loads(shown)["probabilities"] == pytest.approx(right[0]["probabilities"], abs=1e-6)


def test_implementations_agree(toolkit_command: Command, classifier: Path, reviews: Path) -> None:
    found = []
    for implementation in ("scratch", "hf"):
        how = ("--implementation", implementation, "--batch-size", "2")
        done = toolkit_command("predict", classifier, "--file", reviews, *how)
        found.append([json.loads(line) for line in done.out.splitlines()])
    for one, other in zip(*found, strict=True):
        assert one.pop("probabilities") == pytest.approx(other.pop("probabilities"), abs=1e-6)
        assert one.pop("probability") == pytest.approx(other.pop("probability"), abs=1e-6)
        assert one == other


def test_pairs_and_another_ending(
    toolkit_command: Command, classifier: Path, tmp_path: Path
) -> None:
    file, output = tmp_path / "pairs.csv", tmp_path / "out.csv"
    file.write_text("prediction,a,b\nx,好,坏\ny,好,\n", encoding="utf-8")
    how = ("--text-column", "a", "--pair-column", "b", "--output", output)
    done = toolkit_command("predict", classifier, "--file", file, *how)
    assert "already has a column 'prediction'" in done.error
    assert "--suffix" in done.error
    assert not output.exists()
    done = toolkit_command("predict", classifier, "--file", file, *how, "--suffix", "_b")
    assert done.status == 0
    rows = read(output)
    assert list(rows[0]) == ["prediction", "a", "b", *(f"{name}_b" for name in NEW)]
    expected = predict(open_model(str(classifier)), [("好", "坏"), ("好", "")]).answers
    assert [row["prediction_b"] for row in rows] == [a["prediction"] for a in expected]
    assert rows[1]["prediction_note_b"] == "no text"


def test_bad_inputs(
    toolkit_command: Command, classifier: Path, reviews: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.csv").write_text('id,text\n1,"好\n2,坏\n', encoding="utf-8")
    (tmp_path / "columns.csv").write_text("id,opinion\n1,好\n", encoding="utf-8")
    (tmp_path / "numbers.json").write_text('[{"text": "好"}, {"text": 5}]', encoding="utf-8")
    (tmp_path / "half.json").write_text('[{"text": "\\ud800"}]', encoding="utf-8")
    (tmp_path / "empty.txt").write_text("")
    cases: list[tuple[tuple[object, ...], str]] = [
        (("--file", tmp_path / "reviws.csv"), "Did you mean reviews.csv"),
        (("--file", tmp_path / "broken.csv"), "broken.csv, line 2: not well-formed CSV"),
        (("--file", tmp_path / "columns.csv"), "which column holds the texts. Columns of"),
        (("--file", reviews, "--text-column", "reveiw"), "Did you mean review?"),
        (("--file", tmp_path / "numbers.json"), "row 2: text is 5, expected a text"),
        (("--file", tmp_path / "half.json"), "row 1: text holds half a character"),
        (("--file", tmp_path / "empty.txt"), "empty.txt is empty"),
        (("--file", tmp_path), "holds no images"),
        (("--file", reviews, "好"), "give texts or --file, not both"),
        (("--file", reviews, "--output", tmp_path / "out.xls"), "unknown kind of file"),
        (("--file", reviews, "--output", reviews), "is the file that is read"),
        (("--file", reviews, "--output", reviews, "--overwrite"), "is the file that is read"),
        (("--file", reviews, "--output", tmp_path / "numbers.json"), "exists already"),
        (("--file", reviews, "--output", tmp_path / "no" / "out.csv"), "cannot be written"),
        (("--file", reviews, "--output", reviews / "out.csv"), "cannot be written"),
        (("--file", reviews, "--output", tmp_path / "out.tsv"), "line 6: review holds a tab or"),
        (("--file", reviews, "--pair-column", "review"), "holds the first texts"),
        (("--file", reviews, "--beams", "2"), "--beams is for translation"),
    ]
    before = sorted(tmp_path.iterdir())
    for arguments, message in cases:
        error = toolkit_command("predict", classifier, *arguments).error
        assert message in error.replace("\n", " "), arguments
    assert sorted(tmp_path.iterdir()) == before


def test_no_such_model_and_nothing_to_predict(toolkit_command: Command, tmp_path: Path) -> None:
    assert "no such model folder" in toolkit_command("predict", tmp_path / "x", "好").error
    error = toolkit_command("predict", "demo:other", "好").error
    assert "unknown embedded model" in error


def test_an_error_leaves_the_old_output(
    toolkit_command: Command, classifier: Path, reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = reviews.with_name("out.csv")
    output.write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("toolkit.prediction.session.predict", fail)
    arguments = ("--file", reviews, "--output", output, "--overwrite")
    assert toolkit_command("predict", classifier, *arguments).status == 130
    assert output.read_text() == "old"
    assert sorted(path.name for path in reviews.parent.iterdir()) == ["out.csv", "reviews.csv"]
