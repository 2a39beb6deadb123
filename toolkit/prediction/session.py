"""All rows of an input answered, each once, with the progress shown and what was noticed said."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.console import notify
from toolkit.prediction.inputs import Inputs
from toolkit.prediction.predictor import NO_TEXT, NOTE, Answer, BadRowsError, Predictor
from toolkit.progress import progress_bar

CHUNK = 10_000
"""Rows that are sorted by length together; more would be held as tokens at once."""
_SHOWN = 3


@dataclass(frozen=True)
class Predictions:
    """Answers in the order of the rows, and the seconds they took (without loading the model)."""

    answers: list[Answer]
    seconds: float


def predict(predictor: Predictor, rows: Sequence[Any], what: str = "predicting") -> Predictions:
    """Answer every row exactly once.

    Args:
        rows: of the predictor's kind; equal rows have equal answers.
        what: name of the activity in the progress display.

    Raises:
        BadRowsError: rows that cannot be answered.
        RuntimeError: a row is without an answer.
    """
    started = time.perf_counter()
    answers: list[Answer] = []
    with progress_bar(what, len(rows)) as display:
        for start in range(0, len(rows), CHUNK):
            try:
                answers += predictor(rows[start : start + CHUNK], display.advance)
            except BadRowsError as error:
                raise error.further(start) from error
    if len(answers) != len(rows):
        raise RuntimeError(f"{len(answers)} answers to {len(rows)} rows")
    return Predictions(answers, time.perf_counter() - started)


def say_notes(inputs: Inputs, predictor: Predictor, found: Predictions) -> None:
    """One remark for each kind of note on the answers, with the first rows that have it."""
    places: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    for row, answer in enumerate(found.answers):
        note = str(answer.get(NOTE, ""))
        if note:
            kind = note if note == NO_TEXT or predictor.kind == "image" else "not read to the end"
            counts[kind] += 1
            places.setdefault(kind, [])
            if len(places[kind]) < _SHOWN:
                places[kind].append(inputs.place(row))
    for kind, count in counts.items():
        more = ", ..." if count > len(places[kind]) else ""
        notify(f"{count:,} of {len(inputs):,} rows: {kind} ({'; '.join(places[kind])}{more}).")
