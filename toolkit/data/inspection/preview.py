"""The first rows of every split as a recipe sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from toolkit.data.inspection.reading import Reading
from toolkit.data.inspection.tokens import SPLITS, Tokenizing

_LEFT_OUT = ("input_ids", "labels", "length", "source_length", "target_length", "token_type_ids",
             "pixels", "start", "end")  # fmt: skip
"""Columns for the model alone."""


def first_rows(reading: Reading, count: int, model: Tokenizing | None) -> dict[str, list[Any]]:
    """Rows by split, letter for letter: id, texts, the name of the label, tokens of a model.

    Args:
        count: rows of every split at most.
    """
    return {split: list(_rows(reading, split, count, model)) for split in SPLITS}


def _rows(
    reading: Reading, split: str, count: int, model: Tokenizing | None
) -> Iterator[dict[str, Any]]:
    data, rows = reading.data, getattr(reading.data, split)
    columns = [name for name in rows.column_names if name not in _LEFT_OUT]
    shown = {name: _first(rows[name], count) for name in columns}
    for row in range(min(count, len(rows))):
        found = {name: cells[row] for name, cells in shown.items()}
        if "label" in found:
            found["label"] = data.label_names[found["label"]]
        if model is not None:
            for column, tokens in reading.tokens.get(split, {}).items():
                name = (
                    "pieces" if column in ("text", "sentence", "question") else f"{column}_pieces"
                )
                found[name] = model.pieces(tokens.ids[row])
        yield found


def _first(cells: Sequence[Any], count: int) -> list[Any]:
    return list(cells[:count])
