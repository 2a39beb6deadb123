"""What a run answered on its test set, read from its file and checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from toolkit.errors import UserError


class NotFinite(UserError):  # noqa: N818  (it is what is wrong with a run)
    """A value of a run is NaN or infinite: its training has failed, its files are whole."""


@dataclass(frozen=True)
class Predictions:
    """Answers to the examples of a test set, one entry per example, in the order of the file.

    `inputs` is what was asked (a text, a question, a source sentence) and `images` the file and row
    of each image; None where the run recorded none. `truth` is what is right, such that two runs
    tested on the same thing have equal values (the name of a label, a reference, a tuple of tags).
    `fields` are the task's own columns: arrays whose first dimension is the examples.
    """

    ids: list[str]
    inputs: list[str] | None
    images: list[str] | None
    truth: list[Hashable]
    fields: dict[str, NDArray[Any]]

    def take(self, rows: Sequence[int]) -> Predictions:
        """These rows, in this order."""
        return replace(
            self,
            ids=_taken(self.ids, rows),
            inputs=None if self.inputs is None else _taken(self.inputs, rows),
            images=None if self.images is None else _taken(self.images, rows),
            truth=_taken(self.truth, rows),
            fields={name: values[list(rows)] for name, values in self.fields.items()},
        )


def _taken(values: list[Any], rows: Sequence[int]) -> list[Any]:
    return [values[row] for row in rows]


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """A one-dimensional array of anything, lists and texts of any length too."""
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):  # at once, numpy takes equally long lists for rows
        array[place] = value
    return array


def read_table(path: Path, columns: Sequence[str]) -> pyarrow.Table:
    """Read a predictions file that must have these columns without gaps, and distinct ids.

    Raises:
        UserError: the file is missing, damaged or empty, a column is missing, a value is empty (its
            row is named) or an id stands there twice.
    """
    if not path.is_file():
        raise UserError(
            f"{path} does not exist: the run kept no predictions, and without them two runs cannot "
            "be compared example by example. Evaluate the run again."
        )
    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise UserError(
            f"{path} cannot be read as parquet ({str(error).strip()}). "
            "It was probably cut off while it was written: evaluate the run again."
        ) from error
    for column in columns:
        if column not in table.column_names:
            raise UserError(
                f"{path} has no column '{column}'. Columns found: {', '.join(table.column_names)}."
            )
        empty = table[column].is_null().to_numpy()
        if empty.any():
            raise UserError(f"{path}, row {int(np.argmax(empty))}: '{column}' is empty.")
    if table.num_rows == 0:
        raise UserError(f"{path} has no rows: there is nothing to compare.")
    check_unique([str(value) for value in table["id"].to_pylist()], path)
    return table


def check_unique(ids: list[str], path: Path) -> None:
    """Refuse ids that stand in the file more than once; names the first and its rows."""
    repeated = [(value, count) for value, count in Counter(ids).items() if count > 1]
    if repeated:
        value, count = repeated[0]
        rows = [row for row, other in enumerate(ids) if other == value]
        raise UserError(
            f"{path} holds the id {value!r} {count} times (rows {rows[0]} and {rows[1]}); "
            f"{len(repeated)} ids are repeated in all. Every test example must be there exactly "
            "once: evaluate the run again."
        )


def texts_of(table: pyarrow.Table, *columns: str) -> list[str] | None:
    """The first column as text, with what stands in the further ones that are there."""
    if columns[0] not in table.column_names:
        return None
    shown = [name for name in columns if name in table.column_names]
    rows = zip(*(table[name].to_pylist() for name in shown), strict=True)
    return [" | ".join("" if value is None else str(value) for value in row) for row in rows]


def numbers_of(table: pyarrow.Table, column: str, path: Path) -> NDArray[np.float64]:
    """A column of finite numbers.

    Raises:
        UserError: it holds something else; `NotFinite` for NaN or infinity. Names the row.
    """
    kind = table.schema.field(column).type
    if not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)):
        raise UserError(f"{path}: column '{column}' holds {kind}, expected numbers.")
    values: NDArray[np.float64] = table[column].to_numpy().astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong) > 0:
        row = int(wrong[0])
        raise NotFinite(
            f"{path}, row {row}: '{column}' is {values[row]} ({len(wrong):,} rows are not finite). "
            "A run whose losses are not finite cannot be compared."
        )
    return values


def stacked(runs: Sequence[Predictions], field: str) -> NDArray[np.float64] | None:
    """A field of every run [runs, examples], NaN for runs without it; None where none has it."""
    if not any(field in run.fields for run in runs):
        return None
    missing = np.full(len(runs[0].ids), np.nan)
    return np.stack([run.fields.get(field, missing) for run in runs])
