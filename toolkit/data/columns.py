"""Which column holds the texts and which the labels."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.data.suggest import near_names
from toolkit.errors import UserError

TEXT_NAMES = (
    "text", "review", "sentence", "content", "comment", "document",
    "文本", "内容", "评论", "正文", "句子", "评价", "text_a", "sentence1",
    "review_body", "review_text", "input",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "sentiment", "category", "class", "target", "标签", "类别", "情感", "分类",
    "rating", "stars", "star", "score", "星级", "评分",
)  # fmt: skip


def text_column(columns: Sequence[str], asked: str | None, source: str) -> str:
    """The column of texts: the one asked for, else the first common name that exists.

    Raises:
        UserError: no such column; lists the columns that exist.
    """
    return _choose(columns, asked, TEXT_NAMES, "text", source)


def label_column(columns: Sequence[str], asked: str | None, source: str) -> str:
    """The column of labels; as `text_column`."""
    return _choose(columns, asked, LABEL_NAMES, "label", source)


def pair_column(columns: Sequence[str], asked: str, text_name: str, source: str) -> str:
    """The column of second texts, which is never guessed.

    Raises:
        UserError: no such column, or the one of the first texts.
    """
    found = _choose(columns, asked, (), "second text", source)
    if found == text_name:
        raise UserError(
            f"--pair_column {asked}: this column holds the first text of every pair. Columns of "
            f"{source}: {', '.join(columns)}. Name the first one with --text_column."
        )
    return found


def _choose(
    columns: Sequence[str], asked: str | None, common: Sequence[str], kind: str, source: str
) -> str:
    return choose_column(columns, asked, common, source, f"{kind}s", _advice(columns, kind))


def choose_column(
    columns: Sequence[str],
    asked: str | None,
    common: Sequence[str],
    source: str,
    what: str,
    advice: str,
    flag: str | None = None,
) -> str:
    """The column asked for, else the first of the common names that exists, in whatever case.

    Args:
        what: the column holds, for messages: "texts".
        advice: a sentence on how to name it, said where it cannot be told.
        flag: that a column is asked for with, where messages are to name it.

    Raises:
        UserError: no such column; lists the columns that exist.
    """
    existing = f"Columns of {source}: {', '.join(columns)}."
    if asked is not None:
        if asked in columns:
            return asked
        missing = f"no column {asked!r}" if flag is None else f"{flag} {asked}: no such column"
        raise UserError(f"{missing}. {existing}{near_names(asked, list(columns))}")
    by_lower_case = {name.lower(): name for name in reversed(columns)}
    for name in common:
        if name in by_lower_case:
            return by_lower_case[name]
    raise UserError(f"cannot tell which column holds the {what}. {existing} {advice}")


_SEPARATORS = {
    "\t": "Tabs separate its fields: give it a name that ends in .tsv.",
    ",": "Commas separate its fields: give it a name that ends in .csv.",
    "|": "If | separates its fields, write sep=| above its first line (of a .csv).",
    "，": "If ， separates its fields, write sep=， above its first line (of a .csv).",
}


def _advice(columns: Sequence[str], kind: str) -> str:
    if len(columns) > 1:
        return f"Name it with --{kind}_column. (The first line of a file must name the columns.)"
    for separator, advice in _SEPARATORS.items():
        if any(separator in name for name in columns):
            return advice
    return "There is one column only: fields are separated by , or ; in .csv, by tabs in .tsv."
