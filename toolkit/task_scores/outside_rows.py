"""Which row of somebody's file is about which example of a run's test set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from toolkit.data.files import Table
from toolkit.errors import UserError
from toolkit.task_scores.predictions import Predictions

_EXAMPLES = 3


class Tested(Protocol):
    """A run directory that has been read: its summary and its answers to the test set."""

    @property
    def folder(self) -> Path:
        """Where it lies, for messages."""

    @property
    def summary(self) -> dict[str, Any]:
        """As summary.json holds it."""

    @property
    def test(self) -> Predictions:
        """Answers to the test set."""


def with_ids_as_rows(table: Table, like: Tested) -> Table:
    """SQuAD's form of predictions, one object {"id": answer, …}, as a table of ids and answers."""
    one_object = len(table) == 1 and not {"id", "prediction"} & {*table.columns}
    if like.summary["task"] != "question-answering" or not one_object:
        return table
    ids = list(table.columns)
    answers = [table.columns[name][0] for name in ids]
    columns = {"id": ids, "prediction": answers}
    return Table(columns, table.source, "entry", list(range(1, len(ids) + 1)))


def match_rows(table: Table, input_columns: Sequence[str], like: Tested) -> list[int]:
    """The row of the file for every example of the run, in the run's order.

    By the ids; without a column `id` by what was asked; where some examples share that, row by row,
    if it is the same in every row, and mostly different from one to the next.

    Args:
        input_columns: that may hold what was asked; those that are there, together.

    Raises:
        UserError: rows are missing, strange or repeated, or nothing says which row is which.
    """
    if "id" in table.columns:
        ids = [_id(cell, table, row) for row, cell in enumerate(table.columns["id"])]
        asked_too = any(name in table.columns for name in input_columns)
        advice = " Without the column 'id', rows are matched by what was asked." * asked_too
        return _match(table, "id", ids, like.test.ids, like, advice)
    asked = like.test.images if like.test.inputs is None else like.test.inputs
    found = [name for name in input_columns if name in table.columns]
    if not found or asked is None:
        raise UserError(
            f"{table.source} has no column 'id'"
            + (f", nor one of {', '.join(input_columns)} with what was asked" if asked else "")
            + f". Columns found: {', '.join(table.columns)}. Nothing says which row is about which "
            f"example: take the ids from {_file(like)}."
        )
    given = _inputs(table, found, asked)
    distinct = len(set(asked))
    if given == asked and 2 * distinct > len(asked):
        return list(range(len(asked)))
    if distinct < len(asked):
        repeated = next(text for place, text in enumerate(asked) if text in asked[:place])
        raise UserError(
            f"{table.source} has no column 'id', and what was asked does not say which row is "
            f"which: examples of the test set share theirs (such as {repeated!r:.60}). Add the "
            f"column 'id' with the ids of {_file(like)}."
        )
    return _match(table, found[0], given, asked, like)


def _id(cell: Any, table: Table, row: int) -> str:
    if cell is None or cell == "" or isinstance(cell, list | dict):
        raise UserError(f"{table.place(row)}: id is {cell!r:.60}, expected the id of an example.")
    whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell) if whole else cell)


def _inputs(table: Table, columns: Sequence[str], asked: Sequence[str]) -> list[str]:
    """What was asked in each row, in the form of the run: where several are possible, the likest.

    Runs record pairs with " | " between them, tokens with spaces, and characters without.
    """
    known = set(asked)
    readings = []
    for name in columns:
        cells = ["" if cell is None else cell for cell in table.columns[name]]
        if name == "tokens":
            tokens = [cell if isinstance(cell, list) else str(cell).split() for cell in cells]
            readings += [[space.join(map(str, row)) for row in tokens] for space in ("", " ")]
        else:
            readings.append(list(map(str, cells)))
    if len(readings) > 1:
        readings.append([" | ".join(row) for row in zip(*readings, strict=True)])
    return max(readings, key=lambda texts: sum(text in known for text in texts))


def _match(
    table: Table,
    column: str,
    given: Sequence[str],
    expected: Sequence[str],
    like: Tested,
    advice: str = "",
) -> list[int]:
    row_of: dict[str, int] = {}
    repeated: list[int] = []
    for row, value in enumerate(given):
        if row_of.setdefault(value, row) != row:
            repeated.append(row)
    if repeated:
        value = given[repeated[0]]
        raise UserError(
            f"{table.place(repeated[0])}: the {column} {value!r:.60} stands there a second time "
            f"(before: {table.place(row_of[value])}); {len(repeated):,} rows repeat an earlier "
            "one. Every test example must be there exactly once."
        )
    missing = [value for value in expected if value not in row_of]
    known = set(expected)
    strange = [value for value in row_of if value not in known]
    if missing or strange:
        problems = [
            f"{len(values):,} {what} ({_listed(values)})"
            for values, what in (
                (missing, f"of the {len(expected):,} test examples are missing"),
                (strange, "rows are about no test example"),
            )
            if values
        ]
        raise UserError(
            f"{table.source}: {' and '.join(problems)}. Expected every example of {_file(like)} "
            f"exactly once, by its {column}.{advice}"
        )
    return [row_of[value] for value in expected]


def _listed(values: Sequence[str]) -> str:
    shown = [f"{value!r:.60}" for value in values[:_EXAMPLES]]
    return ", ".join(shown) + (", …" if len(values) > _EXAMPLES else "")


def _file(like: Tested) -> Path:
    return like.folder / "predictions" / "test.parquet"
