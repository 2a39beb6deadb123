"""Columns as Parquet holds them: values of one kind in each."""

from __future__ import annotations

import io
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.errors import UserError, first_line


def first_misfit(values: Sequence[Any]) -> tuple[int, str] | None:
    """The first value (0-based) that cannot stand below those before it, and why; None: all can."""
    problem = _problem(values)
    if problem is None:
        return None
    # What holds some rows holds the first of them, too: the place is found by halving.
    counts = range(1, len(values))
    row = bisect_left(counts, True, key=lambda count: _problem(values[:count]) is not None)
    return row, problem


def write_parquet(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    """Write columns of equal length.

    Raises:
        UserError: values of several kinds in a column.
    """
    import pyarrow
    import pyarrow.parquet

    for name, values in columns.items():
        problem = _problem(values)
        if problem is not None:
            raise UserError(
                f"column {name!r} holds values of several kinds, which a .parquet file cannot "
                f"({problem}): write .jsonl."
            )
    table = pyarrow.table({name: pyarrow.array(values) for name, values in columns.items()})
    pyarrow.parquet.write_table(table, path)


def _problem(values: Sequence[Any]) -> str | None:
    """Why Parquet cannot hold the values; None: it can."""
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.table({"column": pyarrow.array(values)})
        # Some kinds are Arrow's alone, such as objects without a key: its schema is written, too.
        pyarrow.parquet.write_table(table.slice(0, 0), io.BytesIO())
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError) as error:
        return first_line(error)
    return None
