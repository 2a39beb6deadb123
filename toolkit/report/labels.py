"""The few words that the layout itself says, in the language of the report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Labels:
    """`note` and `warning` introduce a paragraph and carry their own colon."""

    note: str
    warning: str
    contents: str
    table: str


_ENGLISH = Labels(note="Note:", warning="Warning:", contents="Contents", table="Table")
_CHINESE = Labels(note="注意：", warning="警告：", contents="目录", table="表格")


def labels(language: str) -> Labels:
    """Chinese for "zh" and its variants, English for every other language tag."""
    return _CHINESE if language.lower().split("-")[0] == "zh" else _ENGLISH
