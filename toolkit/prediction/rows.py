"""Which columns of the input a model reads, and their cells as it takes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.data.columns import TEXT_NAMES, choose_column
from toolkit.data.image_sources import image_column_name, image_content
from toolkit.errors import UserError
from toolkit.prediction.inputs import Inputs

SOURCE_NAMES = ("source", "src", "英文", "原文")
TOKEN_NAMES = ("tokens", "words", "characters", "chars")
QUESTION_NAMES = ("question", "query", "问题", "提问")
CONTEXT_NAMES = ("context", "passage", "paragraph", "text", "document", "正文", "上下文", "文章")
PROMPT_NAMES = ("prompt", "prompts", "提示")


@dataclass(frozen=True)
class Columns:
    """Names that the user gave to columns; None: found by common names."""

    text: str | None = None
    """Of texts (questions, prompts, sources)."""
    pair: str | None = None
    """Of second texts, for a model of pairs; never guessed."""
    context: str | None = None
    """Of the texts that questions are about."""
    image: str | None = None
    """Of images or their paths."""


def choose_rows(inputs: Inputs, kind: str, columns: Columns, task: str) -> list[Any]:
    """The rows of a predictor's `kind` (`toolkit.prediction.predictor.Predictor`).

    Empty cells are texts without a character.

    Raises:
        UserError: no such column (lists those that exist), or a cell that is no text; names it.
    """
    _refuse_unused(columns, kind, task)
    if kind == "image":
        return _images(inputs, columns.image)
    if kind == "question":
        question = _column(inputs, columns.text, QUESTION_NAMES, "questions", "--text-column")
        context = _column(inputs, columns.context, CONTEXT_NAMES, "contexts", "--context-column")
        return list(zip(_texts(inputs, question), _texts(inputs, context), strict=True))
    names = (*_first_names(kind, task), *TEXT_NAMES)
    text = _column(inputs, columns.text, names, "texts", "--text-column")
    if kind == "tokens":
        return _tokens(inputs, text)
    if columns.pair is None:
        return _texts(inputs, text)
    pair = _column(inputs, columns.pair, (), "second texts", "--pair-column")
    if pair == text:
        raise UserError(
            f"--pair-column {pair}: this column holds the first texts. Name them: --text-column."
        )
    return list(zip(_texts(inputs, text), _texts(inputs, pair), strict=True))


def _refuse_unused(columns: Columns, kind: str, task: str) -> None:
    """Columns that are named for nothing are a mistake."""
    for flag, name, fits in (
        ("--text-column", columns.text, kind != "image"),
        ("--pair-column", columns.pair, task == "text-classification"),
        ("--context-column", columns.context, kind == "question"),
        ("--image-column", columns.image, kind == "image"),
    ):
        if name is not None and not fits:
            raise UserError(f"{flag} {name}: this model does {task}, which has no such column.")


def _first_names(kind: str, task: str) -> tuple[str, ...]:
    """Names that mean more than "text" to a task."""
    if kind == "tokens":
        return TOKEN_NAMES
    return {"translation": SOURCE_NAMES, "text-generation": PROMPT_NAMES}.get(task, ())


def _column(inputs: Inputs, asked: str | None, common: Sequence[str], what: str, flag: str) -> str:
    advice = f"Name it with {flag}. (The first line of a csv or tsv file must name the columns.)"
    return choose_column(list(inputs.columns), asked, common, inputs.source, what, advice, flag)


def _texts(inputs: Inputs, column: str) -> list[str]:
    return [
        _text("" if cell is None else cell, inputs, row, column)
        for row, cell in enumerate(inputs.columns[column])
    ]


def _text(cell: Any, inputs: Inputs, row: int, column: str) -> str:
    if not isinstance(cell, str):
        raise UserError(f"{inputs.place(row)}: {column} is {cell!r:.60}, expected a text.")
    try:
        cell.encode()
    except UnicodeEncodeError as error:
        raise UserError(
            f"{inputs.place(row)}: {column} holds half a character (a surrogate, character "
            f"{error.start + 1})."
        ) from error
    return cell


def _tokens(inputs: Inputs, column: str) -> list[Any]:
    """Texts, or lists of tokens (in csv and tsv as JSON: ["北", "京"])."""
    rows: list[Any] = []
    for row, cell in enumerate(inputs.columns[column]):
        if isinstance(cell, str) and column.lower() in TOKEN_NAMES and cell.startswith("["):
            cell = _from_json(cell, inputs, row, column)
        if isinstance(cell, list):
            rows.append([_text(token, inputs, row, column) for token in cell])
        else:
            rows.append(_text("" if cell is None else cell, inputs, row, column))
    return rows


def _from_json(cell: str, inputs: Inputs, row: int, column: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        raise UserError(
            f"{inputs.place(row)}: {column} is {cell!r:.60}, expected a JSON list such as "
            '["北", "京"].'
        ) from None


def _images(inputs: Inputs, asked: str | None) -> list[Any]:
    names = list(inputs.columns)
    if asked is None and names == ["text"]:  # lines of standard input or of a text file
        asked = "text"
    column = image_column_name(names, asked, inputs.source)
    return [
        image_content(cell or None, inputs.base, inputs.place(row))[0]
        for row, cell in enumerate(inputs.columns[column])
    ]
