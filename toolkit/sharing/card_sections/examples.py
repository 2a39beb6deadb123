"""What the labels mean, shown by an example of each; for tasks without labels, some answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet

from toolkit.data.tag_schemes import read_spans
from toolkit.report import wording
from toolkit.sharing.card_sections.tables import text_table

LONGEST = 120  # characters of a text
_ANSWERS = 3
_MOST_LABELS = 50

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Examples:
    """A section: its heading, what the examples are in a sentence, and a table in Markdown."""

    title: str
    note: str
    table: str


def describe_examples(run: Path, summary: dict[str, Any], *, shown: bool) -> Examples | None:
    """The section of a run; None where its task has neither labels nor answers to show.

    Examples are of the test set: the first that was answered right, else the first.

    Args:
        summary: schema version 1.
        shown: False leaves the texts out; the labels stay.
    """
    rows = _rows(run, str(summary["task"])) if shown else []
    describe = _TASKS.get(str(summary["task"]))
    return None if describe is None else describe(summary, rows)


def test_texts(run: Path, summary: dict[str, Any]) -> Iterator[str]:
    """Texts that the model was tested on, whatever its task; none for images."""
    for row in _rows(run, str(summary["task"])):
        for name in ("text", "question", "source"):
            if isinstance(row.get(name), str):
                yield row[name]
        if isinstance(row.get("tokens"), list):
            yield " ".join(row["tokens"])


def _rows(run: Path, task: str) -> Rows:
    split = "validation" if task == "pretraining" else "test"
    file = run / "predictions" / f"{split}.parquet"
    if not file.is_file():
        return []
    rows: Rows = pyarrow.parquet.read_table(file).to_pylist()
    return rows


def _labels(summary: dict[str, Any], rows: Rows) -> Examples:
    names = [str(name) for name in summary["data"]["label_names"]]
    pictures = summary["task"] == "image-classification"
    texts = {} if pictures else _text_of_labels(rows)
    table = text_table(
        ["id", "label"] + ["example of the test data"] * bool(texts),
        (
            [str(place), name] + ([texts.get(place, "–")] if texts else [])
            for place, name in enumerate(names[:_MOST_LABELS])
        ),
    )
    note = f"{len(names):,} labels" + (
        f"; the first {_MOST_LABELS} are shown, all are in config.json."
        if len(names) > _MOST_LABELS
        else "."
    )
    return Examples("Labels", note, table)


def _text_of_labels(rows: Rows) -> dict[int, str]:
    """By label id: the first text that was labelled right, else the first."""
    right: dict[int, str] = {}
    first: dict[int, str] = {}
    for row in rows:
        if "text" in row:
            text = wording.shortened(str(row["text"]), LONGEST)
            if row.get("pair") is not None:
                text = f"{text} / {wording.shortened(str(row['pair']), LONGEST)}"
            first.setdefault(row["label"], text)
            if row["prediction"] == row["label"]:
                right.setdefault(row["label"], text)
    return first | right


def _entities(summary: dict[str, Any], rows: Rows) -> Examples:
    kinds = [name[2:] for name in map(str, summary["data"]["label_names"]) if name.startswith("B-")]
    between = "" if summary["data"]["tokens"] == "characters" else " "
    found: dict[str, list[str]] = {}
    for row in rows:
        sentence = wording.shortened(between.join(row["tokens"]), LONGEST)
        for start, stop, kind in read_spans(row["gold"])[0]:
            found.setdefault(kind, [between.join(row["tokens"][start:stop]), sentence])
    table = text_table(
        ["entity"] + ["example", "in"] * bool(found),
        ([kind, *(found.get(kind, ["–", ""]) if found else [])] for kind in kinds),
    )
    note = "Tags are B- and I- of these entities, and O."
    return Examples("Labels", note + " Examples are of the test data." * bool(found), table)


def _answers(*columns: tuple[str, str]) -> Callable[[dict[str, Any], Rows], Examples | None]:
    """A section of a task whose answers are texts: (column of the file, its heading)."""

    def describe(_: dict[str, Any], rows: Rows) -> Examples | None:
        if not rows:
            return None
        places = [place * len(rows) // _ANSWERS for place in range(min(_ANSWERS, len(rows)))]
        table = text_table(
            [heading for _, heading in columns],
            ([_shown(rows[place][name]) for name, _ in columns] for place in places),
        )
        note = f"{len(places)} of {len(rows):,} test examples, evenly spaced, not picked."
        return Examples("Examples", note, table)

    return describe


def _shown(value: Any) -> str:
    text = " / ".join(map(str, value)) if isinstance(value, list) else str(value)
    return wording.shortened(text, LONGEST) or "(none)"


_TASKS: dict[str, Callable[[dict[str, Any], Rows], Examples | None]] = {
    "text-classification": _labels,
    "image-classification": _labels,
    "token-classification": _entities,
    "translation": _answers(
        ("source", "source"), ("hypothesis", "translation"), ("reference", "reference")
    ),
    "question-answering": _answers(
        ("question", "question"), ("prediction", "answer"), ("answers", "right")
    ),
}
