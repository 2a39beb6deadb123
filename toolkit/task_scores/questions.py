"""Question answering: F1 and exact match, questions about one text drawn together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.answer_metrics import score_answer
from toolkit.errors import UserError
from toolkit.task_scores.columns import list_column, text_column
from toolkit.task_scores.measures import Measure, Unit, ratio
from toolkit.task_scores.predictions import Predictions, objects, read_table
from toolkit.task_scores.view import (
    Breakdown,
    TaskView,
    length_breakdown,
    length_parts,
    measure_on,
)

F1 = Measure("f1", "F1", Unit.SHARE, ratio)
EXACT_MATCH = Measure("exact_match", "exact match", Unit.SHARE, ratio, counts_right=True)
_NO_ANSWER = "(no answer)"
_LANGUAGES = ("en", "zh")
LONGEST_PASSAGE = 240
"""Characters that are shown of the text that a question is about."""


def read(path: Path, summary: dict[str, Any]) -> Predictions:
    """Read a predictions file: `id`, `question`, right `answers` and the `prediction`.

    A question without right answers cannot be answered: then "" is right. `fields` are `prediction`
    and, where the file has them, `context`, the text that the question is about, and
    `context_hash`, equal for questions about one text. The truth is the tuple of answers.

    Raises:
        UserError: names file and row of what is wrong.
    """
    table = read_table(path, ("id", "question", "answers", "prediction"))
    fields = {"prediction": objects(text_column(table, "prediction", path))}
    for name in ("context", "context_hash"):
        if name in table.column_names and table[name].null_count == 0:
            fields[name] = objects(text_column(table, name, path))
    language = summary["data"].get("language")
    if language not in _LANGUAGES:
        raise UserError(
            f"{path.parent.parent / 'summary.json'}: 'data.language' is {language!r}, expected "
            f"{' or '.join(_LANGUAGES)}: by its rules answers are compared."
        )
    return Predictions(
        ids=[str(value) for value in table["id"].to_pylist()],
        inputs=text_column(table, "question", path),
        images=None,
        truth=[tuple(answers) for answers in list_column(table, "answers", path)],
        fields=fields,
    )


def view(task: str, runs: Sequence[Predictions], summaries: Sequence[dict[str, Any]]) -> TaskView:
    """Runs on the same questions in the same order, scored by the rules of their language."""
    first, language = runs[0], summaries[0]["data"]["language"]
    answers: list[Any] = first.truth
    # [runs, questions, 2]: exact match and F1
    scores = np.array(
        [
            [
                score_answer(given, right, language)
                for given, right in zip(run.fields["prediction"], answers, strict=True)
            ]
            for run in runs
        ]
    )
    exact, f1 = scores[..., 0], scores[..., 1]
    ones = np.ones(len(answers))

    def statistics(key: str, run: int) -> NDArray[np.float64]:
        return np.stack([(f1 if key == F1.key else exact)[run], ones], axis=-1)

    answerable = np.array([bool(right) for right in answers])
    breakdowns = []
    if answerable.any() and not answerable.all():
        breakdowns.append(_by_answerable(statistics, len(runs), answerable))
    if answerable.any():
        breakdowns.append(_by_answer_length(statistics, len(runs), answers, answerable))
    if first.inputs is not None:
        breakdowns.append(
            length_breakdown(
                statistics,
                F1,
                len(runs),
                np.array([len(question) for question in first.inputs]),
                "length of the question in characters",
            )
        )
    clusters = _contexts(runs)
    given = [[text or _NO_ANSWER for text in run.fields["prediction"]] for run in runs]
    unanswerable = 1 - float(answerable.mean())
    return TaskView(
        task=task,
        noun="questions",
        measures=[F1, EXACT_MATCH],
        statistics=statistics,
        truth=[" / ".join(right) or _NO_ANSWER for right in answers],
        answers=given,
        passages=_passages(runs),
        quality=f1,
        quality_label="F1 of the answer",
        right=exact == 1,
        right_means="the answer is exactly one of the right ones",
        clusters=clusters,
        cluster_noun=None if clusters is None else "texts",
        breakdowns=breakdowns,
        facts=_facts(answerable, clusters),
        single_answers={
            place: texts[0] for place, texts in enumerate(given) if len(set(texts)) == 1
        },
        chance=("never giving an answer", unanswerable) if unanswerable else None,
    )


def _contexts(runs: Sequence[Predictions]) -> NDArray[np.int64] | None:
    """The number of each question's text, from the first run that recorded it."""
    for run in runs:
        if "context_hash" in run.fields:
            hashes = run.fields["context_hash"].astype(str)
            numbers: NDArray[np.int64] = np.unique(hashes, return_inverse=True)[1]
            return numbers
    return None


def _passages(runs: Sequence[Predictions]) -> list[str] | None:
    """What each question is about, around its answer, from the first run that recorded it."""
    contexts = next((run.fields["context"] for run in runs if "context" in run.fields), None)
    if contexts is None:
        return None
    answers: list[Any] = runs[0].truth
    given = zip(*(run.fields["prediction"] for run in runs), strict=True)
    return [
        excerpt(context, [*right, *others])
        for context, right, others in zip(contexts, answers, given, strict=True)
    ]


def excerpt(text: str, sought: Sequence[str], limit: int = LONGEST_PASSAGE) -> str:
    """At most `limit` characters of a text, on one line, around the first of `sought` that it has.

    Without any of them its beginning. What is cut off is marked by an ellipsis.
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    words = (" ".join(one.split()) for one in sought)
    found = next(((line.find(one), len(one)) for one in words if one and one in line), (0, 0))
    middle = found[0] + min(found[1], limit) // 2
    start = max(0, min(middle - limit // 2, len(line) - limit))
    before, after = start > 0, start + limit < len(line)
    cut = line[start + before : start + limit - after].strip()
    return "…" * before + cut + "…" * after


def _facts(answerable: NDArray[np.bool_], clusters: NDArray[np.int64] | None) -> list[str]:
    counts = f"Questions: {len(answerable):,}, of them {int((~answerable).sum()):,} without answer"
    if clusters is not None:
        return [f"{counts}; they are about {int(clusters.max()) + 1:,} texts."]
    return [
        f"{counts}.",
        "None of the runs recorded which questions are about the same text, so intervals take "
        "every question by itself: where questions share texts they are too narrow.",
    ]


def _by_answerable(statistics: Any, runs: int, answerable: NDArray[np.bool_]) -> Breakdown:
    masks = [answerable, ~answerable]
    return Breakdown(
        title="By whether there is an answer",
        note="Where there is none, only the empty answer is right.",
        measure=F1,
        label=F1.label,
        names=["with an answer", "without an answer"],
        examples=[int(mask.sum()) for mask in masks],
        values=measure_on(statistics, F1, runs, masks),
    )


def _by_answer_length(
    statistics: Any,
    runs: int,
    answers: Sequence[tuple[str, ...]],
    answerable: NDArray[np.bool_],
) -> Breakdown:
    rows = np.flatnonzero(answerable)
    names, parts = length_parts(np.array([len(answers[int(row)][0]) for row in rows]))
    masks = []
    for part in parts:
        mask = np.zeros(len(answers), dtype=np.bool_)
        mask[rows[part]] = True
        masks.append(mask)
    return Breakdown(
        title="By length of the answer in characters",
        note="Of the first right answer; questions without one are left out. Groups of about equal "
        "size; equal lengths stay together.",
        measure=F1,
        label=F1.label,
        names=names,
        examples=[int(mask.sum()) for mask in masks],
        values=measure_on(statistics, F1, runs, masks),
    )
