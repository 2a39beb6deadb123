"""What a file of answers cannot hold, found before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.errors import UserError
from toolkit.prediction.inputs import Inputs
from toolkit.prediction.parquet import first_misfit
from toolkit.prediction.predictor import NOTE, Predictor

_ON_A_LINE = ("prediction", "tags")
"""Names of answers that say all of a row on one line, the first that a predictor has."""


def check_names(inputs: Inputs, predictor: Predictor, ending: str = "") -> None:
    """Refuse new columns that have the name of one that is there.

    Raises:
        UserError: names it, and says how to go on.
    """
    new = (*predictor.names, *(f"probability_{label}" for label in predictor.labels), NOTE)
    clash = [f"{name}{ending}" for name in new if f"{name}{ending}" in inputs.columns]
    if clash:
        raise UserError(
            f"{inputs.source} already has a column {clash[0]!r}. Give the new columns another "
            "ending, such as --suffix _2, or rename that one."
        )


def check_cells(inputs: Inputs, suffix: str) -> None:
    """Refuse cells that a file of this kind cannot hold, before anything is computed.

    Raises:
        UserError: names row and column.
    """
    for name, cells in inputs.columns.items():
        if suffix == ".tsv":
            _check_tsv(name, cells, inputs)
        elif suffix == ".parquet":
            _check_parquet(name, cells, inputs)


def _check_tsv(name: str, cells: Sequence[Any], inputs: Inputs) -> None:
    for row, cell in enumerate(cells):
        if isinstance(cell, str) and any(mark in cell for mark in "\t\n\r"):
            raise UserError(
                f"{inputs.place(row)}: {name} holds a tab or a line end ({cell!r:.60}), which "
                "a .tsv file cannot: write .csv or .jsonl."
            )


def _check_parquet(name: str, cells: Sequence[Any], inputs: Inputs) -> None:
    found = first_misfit([plain(cell) for cell in cells])
    if found is not None:
        row, problem = found
        raise UserError(
            f"{inputs.place(row)}: {name} is {cells[row]!r:.60}, which a .parquet file cannot hold "
            f"in one column with what stands above it ({problem}): write .jsonl."
        )


def plain(cell: Any) -> Any:
    """A cell as it goes out; of an image its path, as the bytes would fill the file."""
    if isinstance(cell, dict) and isinstance(cell.get("bytes"), bytes):
        return cell.get("path")
    return None if isinstance(cell, bytes) else cell


def line_column(predictor: Predictor) -> str:
    """Name of the answer that a text file has a line of for each row.

    Raises:
        UserError: the predictor has no such answer.
    """
    for name in _ON_A_LINE:
        if name in predictor.names:
            return name
    raise UserError(
        f"{predictor.task} answers {', '.join(predictor.names)}, none of them a line of a .txt "
        "file: write .jsonl or .csv."
    )
