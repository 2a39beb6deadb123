"""Questions from anywhere in three splits, every training answer found in its context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import datasets

from toolkit.console import notify
from toolkit.data.partition import make_splits, remove_leaks, sizes_to_make
from toolkit.data.questions import Question, locate, read_questions
from toolkit.data.rows import HELD_OUT, LabelledRows
from toolkit.data.splits import is_blank, normalized, split_hash
from toolkit.errors import UserError

_ANSWERED, _UNANSWERABLE = "answered", "unanswerable"


@dataclass(frozen=True)
class QuestionData:
    """Three splits with the columns id, question, context (str), answers (list of str), start, end.

    No answers: the context does not tell. `start` and `end` are the characters of an answer in the
    context, -1 where there is none or where it was not found (held-out questions only: they are
    scored by the texts of their answers). `summary` is what data.json records.
    """

    train: datasets.Dataset
    validation: datasets.Dataset
    test: datasets.Dataset
    language: str  # whose rules compare answers: zh or en
    summary: dict[str, Any]


def load_questions(
    dataset: str,
    *,
    validation_file: str | None = None,
    test_file: str | None = None,
    language: str = "auto",
    sizes: dict[str, int | None] | None = None,
    split_seed: int = 0,
    keep_leaks: bool = False,
) -> QuestionData:
    """Read `dataset`, find the answers in their contexts, and split it.

    Training questions whose answer is not found are left out, which is said. Splits that are made
    are made by context: all questions about one are in the same split.

    Args:
        language: zh, en, or auto: by the characters of the training questions.
        sizes: questions of "train", "validation" and "test"; None uses all, or makes a tenth.
        keep_leaks: keep training questions that are also in validation or test, context and all.

    Raises:
        UserError: whatever is wrong with the data, with file and question.
    """
    sizes = {name: (sizes or {}).get(name) for name in ("train", *HELD_OUT)}
    read = read_questions(dataset, validation_file=validation_file, test_file=test_file)
    if language == "auto":
        language = _language(read["train"])
    spans, repairs = {}, {}
    for name, questions in read.items():
        spans[name], repairs[name] = _find_answers(questions, name)
    found = {name: _rows(questions, spans[name], name) for name, questions in read.items()}
    overlap = remove_leaks(found, keep_leaks)
    made = [name for name in HELD_OUT if name not in found]
    made_sizes = sizes_to_make(made, sizes, len(found["train"]), [_ANSWERED])
    by_context = {
        name: replace(rows, keys=[read[name][row].context for row in rows.rows])
        for name, rows in found.items()
    }
    splits = make_splits(by_context, made_sizes, sizes | dict.fromkeys(made), split_seed)
    tables = {}
    for name, rows in splits.items():
        origin = "train" if name in made else name
        tables[name] = _table([read[origin][i] for i in rows.rows],
                              [spans[origin][i] for i in rows.rows])  # fmt: skip
    summary = {
        "source": dataset,
        "language": language,
        "questions_read": {name: len(questions) for name, questions in read.items()},
        "answers": repairs,
        "overlap": overlap,
        "splits_made": made,
        "split_seed": split_seed,
        "sizes": {name: len(table["id"]) for name, table in tables.items()},
        "contexts": {name: len(set(table["context"])) for name, table in tables.items()},
        "unanswerable": {
            name: sum(not answers for answers in table["answers"]) for name, table in tables.items()
        },
        "sha256": {name: _hash(table) for name, table in tables.items()},
    }
    return QuestionData(
        **{name: datasets.Dataset.from_dict(table, _FEATURES) for name, table in tables.items()},
        language=language,
        summary=summary,
    )


_FEATURES = datasets.Features(
    {
        **{name: datasets.Value("string") for name in ("id", "question", "context")},
        "answers": datasets.List(datasets.Value("string")),
        **{name: datasets.Value("int64") for name in ("start", "end")},
    }
)


def _find_answers(
    questions: Sequence[Question], name: str
) -> tuple[list[tuple[int, int] | None], dict[str, int]]:
    """Characters of the first answer of each question that is found; None: none, or not found."""
    spans: list[tuple[int, int] | None] = []
    counts = {"as_given": 0, "mended": 0, "not_found": 0, "questions_without_a_found_answer": 0}
    first_lost = ""
    for question in questions:
        span = None
        for answer in question.answers:
            start = locate(question.context, answer)
            if start is None:
                counts["not_found"] += 1
                continue
            counts["as_given" if start == answer.start else "mended"] += 1
            span = span or (start, start + len(answer.text))
        spans.append(span)
        if span is None and question.answers:
            counts["questions_without_a_found_answer"] += 1
            first_lost = first_lost or question.place
    if counts["mended"] or counts["not_found"]:
        lost = counts["questions_without_a_found_answer"]
        what = "left out of training" if name == "train" else "scored by the texts of their answers"
        consequence = f"; {lost} questions without one are {what} (the first: {first_lost})"
        notify(
            f"answers of {name} that are not at their offset: {counts['mended']} found once nearby "
            f"and mended, {counts['not_found']} not found{consequence if lost else ''}."
        )
    return spans, counts


def _rows(
    questions: Sequence[Question], spans: Sequence[tuple[int, int] | None], name: str
) -> LabelledRows:
    """Questions as rows that can be compared and split; their key is question and context."""
    rows = LabelledRows(
        texts=[f"{question.context}\n{question.question}" for question in questions],
        keys=[f"{normalized(q.context)}\n{normalized(q.question)}" for q in questions],
        labels=[_ANSWERED if question.answers else _UNANSWERABLE for question in questions],
        ids=[question.id for question in questions],
        place=lambda row: questions[row].place,
        rows=list(range(len(questions))),
        columns=("question", "answers"),
        class_names=None,
    )
    if name in HELD_OUT:
        return rows
    blank = {row for row, q in enumerate(questions) if is_blank(q.question)}
    if blank:
        notify(
            f"left out of training: {len(blank)} without a question (the first: "
            f"{questions[min(blank)].place})."
        )
    kept = [
        row
        for row, question in enumerate(questions)
        if row not in blank and (spans[row] is not None or not question.answers)
    ]
    if not any(question.answers for question in questions):
        raise UserError(
            f"{name}: none of the {len(questions)} questions has an answer (the first: "
            f"{questions[0].place}), so there is nothing to learn from. Expected, as in SQuAD's "
            'files, "answers": [{"text": ..., "answer_start": ...}]; no answers, or is_impossible, '
            "stand for a question that its context does not answer."
        )
    if not any(spans[row] for row in kept):
        raise UserError(
            f"no training answer was found in its context (the first: {questions[0].place}). "
            "answer_start counts characters of the context, from 0."
        )
    return rows.select(kept)


def _table(
    questions: Sequence[Question], spans: Sequence[tuple[int, int] | None]
) -> dict[str, list[Any]]:
    return {
        "id": [question.id for question in questions],
        "question": [question.question for question in questions],
        "context": [question.context for question in questions],
        "answers": [question.texts for question in questions],
        "start": [span[0] if span else -1 for span in spans],
        "end": [span[1] if span else -1 for span in spans],
    }


def _language(questions: Sequence[Question]) -> str:
    text = "".join(question.question for question in questions[:1000])
    chinese = sum("\u3400" <= character <= "\u9fff" for character in text)
    return "zh" if chinese > len(text) / 4 else "en"


def _hash(table: dict[str, list[Any]]) -> str:
    asked = [f"{c}\n{q}" for c, q in zip(table["context"], table["question"], strict=True)]
    return split_hash(asked, ["\n".join(answers) for answers in table["answers"]])
