"""Files of answers: what they hold, and what is refused before anything is computed."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.files import read_table
from toolkit.errors import UserError
from toolkit.prediction import open_model, predict
from toolkit.prediction.inputs import Inputs
from toolkit.prediction.output_checks import check_cells, line_column
from toolkit.prediction.outputs import write_records

from .conftest import Finished

Command = Callable[..., Finished]


@pytest.mark.parametrize("ending", ["", "_2"])
def test_a_text_file_of_tags(
    toolkit_command: Command, tagger: Path, tmp_path: Path, ending: str
) -> None:
    texts = ["今天酒店", "", "好"]
    file, output = tmp_path / "in.jsonl", tmp_path / "tags.txt"
    rows = [{"text": text, "prediction": "old"} for text in texts]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    how = ("--file", file, "--output", output, "--suffix", ending)
    done = toolkit_command("predict", tagger, *how)
    assert done.status == 0, done.err
    expected = [answer["tags"] for answer in predict(open_model(str(tagger)), texts).answers]
    assert [len(tags) for tags in expected] == [4, 0, 1]
    lines = output.read_text(encoding="utf-8").split("\n")
    assert lines == [*(" ".join(tags) for tags in expected), ""]


def test_what_has_no_line_is_refused() -> None:
    predictor: Any = SimpleNamespace(task="boxes", names=("boxes", "scores"), labels=())
    with pytest.raises(UserError, match=r"boxes answers boxes, scores.*write \.jsonl"):
        line_column(predictor)
    predictor.names = ("prediction", "margin")
    assert line_column(predictor) == "prediction"


@pytest.mark.parametrize(
    ("cells", "row"),
    [
        ([None, [1], 1.5, 3], 2),
        ([1, 2.5, "x"], 2),
        (["a", 1], 1),
        ([None, 2**70], 1),
        ([{}, None], 0),
        (["好", "\ud800"], 1),
        ([[1], ["a"]], 1),
    ],
)
def test_what_parquet_cannot_hold_is_found_with_its_row(cells: list[Any], row: int) -> None:
    inputs = Inputs({"text": ["好"] * len(cells), "n": cells}, lambda n: f"line {n + 1}", "file")
    with pytest.raises(UserError, match=rf"^line {row + 1}: n is .*write \.jsonl"):
        check_cells(inputs, ".parquet")
    check_cells(inputs, ".jsonl")


def test_what_parquet_can_hold(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {
        "number": [1, None, 2.5],
        "list": [["a"], [], None],
        "nothing": [None, None, None],
        "date": [date(2025, 1, 2), None, None],
        "object": [{"a": 1}, {"b": "c"}, None],
        "picture": [b"\xff", {"bytes": b"\xff", "path": "a.png"}, None],
    }
    check_cells(Inputs(columns, str, "file"), ".parquet")
    del columns["picture"]
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    write_records(records, tmp_path / "a.parquet", ".parquet")
    written = pq.read_table(tmp_path / "a.parquet").to_pydict()
    assert written.pop("object") == [{"a": 1, "b": None}, {"a": None, "b": "c"}, None]
    assert written == {name: columns[name] for name in written}


def test_mixed_columns_are_refused_before_the_model_is_loaded(
    toolkit_command: Command, classifier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the model is loaded")

    monkeypatch.setattr("toolkit.prediction.opening.open_source", fail)
    file, output = tmp_path / "a.jsonl", tmp_path / "out.parquet"
    cells = [None, [1], 1.5, 3]
    lines = [json.dumps({"text": "好", "n": cell}, ensure_ascii=False) for cell in cells]
    file.write_text("\n".join(lines), encoding="utf-8")
    done = toolkit_command("predict", classifier, "--file", file, "--output", output)
    assert "a.jsonl, line 3: n is 1.5, which a .parquet file cannot" in done.error.replace("\n", "")
    assert not output.exists()


@given(st.lists(st.text("好,\"'\r\n\t\0 ;a"), min_size=1, max_size=6))
def test_csv_is_read_back_letter_for_letter(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    file = tmp_path_factory.mktemp("csv") / "a.csv"
    write_records([{"text": t, "prediction": "好"} for t in texts], file, ".csv")
    assert read_table(file).columns == {"text": texts, "prediction": ["好"] * len(texts)}
    assert file.read_bytes().startswith(b"text,prediction\n")


def test_a_zero_character_goes_through(
    toolkit_command: Command, classifier: Path, tmp_path: Path
) -> None:
    """The same from every kind of file, and from the csv that was written."""
    text = "今\0天"
    (tmp_path / "a.txt").write_text(f"{text}\n好\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text(f"text\n{text}\n好\n", encoding="utf-8")
    (tmp_path / "c.jsonl").write_text(f'{json.dumps({"text": text})}\n{{"text": "好"}}\n')
    first, again = tmp_path / "out.csv", tmp_path / "again.csv"
    for name in ("a.txt", "b.csv", "c.jsonl"):
        how = ("--file", tmp_path / name, "--output", first, "--overwrite")
        done = toolkit_command("predict", classifier, *how)
        assert done.status == 0, done.err
        with first.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert [row["text"] for row in rows] == [text, "好"], name
    second = ("--file", first, "--output", again, "--suffix", "_2")
    assert toolkit_command("predict", classifier, *second).status == 0
    with again.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["text"] for row in rows] == [text, "好"]
    assert [row["prediction"] for row in rows] == [row["prediction_2"] for row in rows]
