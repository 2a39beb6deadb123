"""Questions and the texts that answer them: SQuAD's form, flat tables, the Hub, or embedded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolkit.data.encoding import half_character
from toolkit.data.files import Table, read_table
from toolkit.data.sources import read_source
from toolkit.data.splits import is_blank
from toolkit.demo import questions as demo
from toolkit.errors import UserError

NEAR = 20
"""Characters by which an answer's offset may be wrong and still be mended."""
QUESTION_NAMES = ("question", "query", "问题")
CONTEXT_NAMES = ("context", "passage", "paragraph", "text", "文章")
ANSWER_NAMES = ("answers", "answer", "答案")
START_NAMES = ("answer_start", "start", "offset")


class Answer(NamedTuple):
    """A text that answers, and where the source says it begins in the context; None: not said."""

    text: str
    start: int | None


@dataclass(frozen=True)
class Question:
    """One question as the source has it; no answers: it cannot be answered from its context."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]
    place: str  # where it stands, for messages

    @property
    def texts(self) -> list[str]:
        """What is right to answer, each text once."""
        return list(dict.fromkeys(answer.text for answer in self.answers))


def locate(context: str, answer: Answer) -> int | None:
    """Where an answer begins in its context.

    At the offset given, or else where its text stands exactly once within `NEAR` characters of it
    (in the whole context, where no offset is given or it is negative). None: nowhere for certain.
    """
    text, start = answer
    if start is not None and start >= 0:
        if context.startswith(text, start):
            return start
        found = [place for place in _occurrences(context, text) if abs(place - start) <= NEAR]
    else:
        found = list(_occurrences(context, text))
    return found[0] if len(found) == 1 else None


def _occurrences(context: str, text: str) -> Iterator[int]:
    place = context.find(text)
    while place >= 0:
        yield place
        place = context.find(text, place + 1)


def read_questions(
    dataset: str, *, validation_file: str | None = None, test_file: str | None = None
) -> dict[str, list[Question]]:
    """Questions by split name; "train" is always there.

    Args:
        dataset: demo:questions, file or folder of files in SQuAD's form (data, paragraphs, qas) or
            as a flat table (question, context, answers), or Hub name.

    Raises:
        UserError: nothing of that name, or it cannot be read; names file and question.
    """
    if dataset.startswith("demo:"):
        if dataset != demo.NAME:
            raise UserError(f"unknown embedded data set {dataset!r}; there is {demo.NAME}.")
        splits = {name: _read_demo(found) for name, found in demo.read_questions().items()}
    else:
        tables = read_source(dataset).tables
        splits = {name: read_question_table(table) for name, table in tables.items()}
    for name, file in (("validation", validation_file), ("test", test_file)):
        if file is None:
            continue
        if name in splits:
            raise UserError(f"{dataset} already has a {name} split; leave --{name}_file out.")
        splits[name] = read_question_table(read_table(file))
    return splits


def _read_demo(examples: Sequence[demo.Example]) -> list[Question]:
    return [
        _question(
            None,
            row,
            example.question,
            example.context,
            (Answer(example.answer, example.start),) if example.answer else (),
            f"{demo.NAME}, row {row + 1}",
        )
        for row, example in enumerate(examples)
    ]


def read_question_table(table: Table) -> list[Question]:
    """Questions of a table: of articles with paragraphs (SQuAD's form), or one a row.

    Raises:
        UserError: a column or key that is missing, a question or context without text.
    """
    nested = "paragraphs" in table.columns
    questions = list(_nested(table) if nested else _flat(table))
    if not questions:
        raise UserError(f"{table.source} holds no question.")
    ids = [question.id for question in questions]
    if len(set(ids)) < len(ids):
        repeated = next(i for i, name in enumerate(ids) if name in ids[:i])
        raise UserError(
            f"{questions[repeated].place}: the id {ids[repeated]!r} stands there a second time; "
            "every question needs its own."
        )
    return questions


def _nested(table: Table) -> Iterator[Question]:
    number = 0
    for row, paragraphs in enumerate(table.columns["paragraphs"]):
        for paragraph_number, paragraph in enumerate(paragraphs or [], start=1):
            where = f"{table.place(row)}, paragraph {paragraph_number}"
            context = _field(paragraph, "context", where)
            for entry in _field(paragraph, "qas", where):
                place = f"{where}, question {entry.get('id', number + 1)}"
                answers = _answers(entry.get("answers"), None, place)
                if entry.get("is_impossible"):
                    answers = ()
                asked = _field(entry, "question", where)
                yield _question(entry.get("id"), number, asked, context, answers, place)
                number += 1


def _field(entry: Any, key: str, place: str) -> Any:
    if not isinstance(entry, dict) or key not in entry:
        found = ", ".join(entry) if isinstance(entry, dict) else f"{entry!r:.60}"
        raise UserError(
            f"{place}: found {found}, expected {key!r}, as SQuAD's files have it: "
            'paragraphs: [{"context": ..., "qas": [{"id", "question", "answers"}]}].'
        )
    return entry[key]


def _flat(table: Table) -> Iterator[Question]:
    asked, context, answers = (
        table.columns[_column(table, names)]
        for names in (QUESTION_NAMES, CONTEXT_NAMES, ANSWER_NAMES)
    )
    ids = table.columns.get("id", [None] * len(table))
    start_name = next((name for name in START_NAMES if name in table.columns), None)
    starts = table.columns[start_name] if start_name else [None] * len(table)
    for row in range(len(table)):
        place = table.place(row)
        found = _answers(answers[row], starts[row], place)
        yield _question(ids[row], row, asked[row], context[row], found, place)


def _column(table: Table, names: Sequence[str]) -> str:
    found = next((name for name in names if name in table.columns), None)
    if found is None:
        raise UserError(
            f"{table.source} has no column {names[0]!r}; it has {', '.join(table.columns)}. "
            "Expected question, context and answers (texts and answer_start), or SQuAD's form."
        )
    return found


def _answers(cell: Any, start: Any, place: str) -> tuple[Answer, ...]:
    """Answers in any of their forms; empty texts say that there is none."""
    if isinstance(cell, dict):  # {"text": [...], "answer_start": [...]}, as on the Hub
        texts, starts = cell.get("text") or [], cell.get("answer_start")
        pairs = zip(texts, starts or [None] * len(texts), strict=False)
    elif isinstance(cell, list):  # [{"text": ..., "answer_start": ...}], as in files
        pairs = zip(*_texts_and_starts(cell, place), strict=True)
    else:
        pairs = zip([cell], [start], strict=True)
    found = []
    for text, position in pairs:
        if text is None or text == "":
            continue
        if not isinstance(text, str):
            raise UserError(f"{place}: the answer is {text!r:.60}, expected a text.")
        if wrong := half_character(text):
            raise UserError(f"{place}: the answer {wrong}.")
        found.append(Answer(text, _position(position, place)))
    return tuple(found)


def _texts_and_starts(cell: list[Any], place: str) -> tuple[list[Any], list[Any]]:
    texts: list[Any] = []
    starts: list[Any] = []
    for item in cell:
        if isinstance(item, dict) and "text" not in item:
            raise UserError(f"{place}: an answer has no 'text': {item!r:.60}.")
        texts.append(item["text"] if isinstance(item, dict) else item)
        starts.append(item.get("answer_start") if isinstance(item, dict) else None)
    return texts, starts


def _position(cell: Any, place: str) -> int | None:
    if cell is None or cell == "":
        return None
    try:
        return int(cell)
    except (TypeError, ValueError):
        raise UserError(f"{place}: answer_start is {cell!r:.60}, expected a number.") from None


def _question(
    name: Any, number: int, asked: Any, context: Any, answers: tuple[Answer, ...], place: str
) -> Question:
    for what, text in (("question", asked), ("context", context)):
        if not isinstance(text, str) or (what == "context" and is_blank(text)):
            raise UserError(f"{place}: its {what} is {text!r:.60}, expected a text.")
        if wrong := half_character(text):
            raise UserError(f"{place}: its {what} {wrong}.")
    if name is None or name == "":
        digest = hashlib.sha256(f"{context}\n{asked}".encode()).hexdigest()[:12]
        name = f"{digest}-{number + 1}"
    return Question(str(name), asked, context, answers, place)
