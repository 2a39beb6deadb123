"""Columns of a predictions file by what they must hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow
from numpy.typing import NDArray

from toolkit.errors import UserError
from toolkit.task_scores.predictions import numbers_of


def text_column(table: pyarrow.Table, column: str, path: Path) -> list[str]:
    """Texts, empty ones too.

    Raises:
        UserError: the column holds something else.
    """
    kind = table.schema.field(column).type
    if not _is_text(kind):
        raise UserError(f"{path}: column '{column}' holds {kind}, expected texts.")
    values: list[str] = table[column].to_pylist()
    return values


def list_column(table: pyarrow.Table, column: str, path: Path) -> list[list[str]]:
    """Lists of texts.

    Raises:
        UserError: the column holds something else, or a list lacks a value; names the row.
    """
    kind = table.schema.field(column).type
    is_list = pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind)
    if not is_list or not _is_text(kind.value_type):
        raise UserError(f"{path}: column '{column}' holds {kind}, expected lists of texts.")
    values: list[list[str]] = table[column].to_pylist()
    for row, value in enumerate(values):
        if None in value:
            raise UserError(f"{path}, row {row}: '{column}' has an empty place: {value!r:.60}.")
    return values


def count_column(table: pyarrow.Table, column: str, path: Path) -> NDArray[np.float64]:
    """Whole numbers from 0 on, as floats: they are summed and divided.

    Raises:
        UserError: the column holds something else; names the row.
    """
    values = numbers_of(table, column, path)
    wrong = np.flatnonzero((values < 0) | (values != np.floor(values)))
    if len(wrong) > 0:
        row = int(wrong[0])
        raise UserError(
            f"{path}, row {row}: '{column}' is {values[row]:g}, expected a whole number from 0 on."
        )
    return values


def _is_text(kind: pyarrow.DataType) -> bool:
    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind))
