"""Answers beside the columns they came with: files, JSON lines, or a table on the terminal."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO

from toolkit.data.suggest import near_names
from toolkit.errors import UserError, first_line
from toolkit.json_values import without_nan
from toolkit.prediction.inputs import Inputs
from toolkit.prediction.predictor import NOTE, Answer, Predictor

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".txt")


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
    for name, cells in inputs.columns.items() if suffix == ".tsv" else ():
        for row, cell in enumerate(cells):
            if isinstance(cell, str) and any(mark in cell for mark in "\t\n\r"):
                raise UserError(
                    f"{inputs.place(row)}: {name} holds a tab or a line end ({cell!r:.60}), which "
                    "a .tsv file cannot: write .csv or .jsonl."
                )


def joined(inputs: Inputs, answers: Sequence[Answer], ending: str = "") -> list[dict[str, Any]]:
    """One record per row: its own columns, then the answer's.

    Args:
        ending: put behind the name of every new column.
    """
    names = list(inputs.columns)
    rows = zip(*inputs.columns.values(), strict=True)
    return [
        {
            **dict(zip(names, map(_plain, cells), strict=True)),
            **{f"{name}{ending}": value for name, value in answer.items()},
        }
        for cells, answer in zip(rows, answers, strict=True)
    ]


def _plain(cell: Any) -> Any:
    """A cell as it goes out; of an image its path, as the bytes would fill the file."""
    if isinstance(cell, dict) and isinstance(cell.get("bytes"), bytes):
        return cell.get("path")
    return None if isinstance(cell, bytes) else cell


def flattened(record: Mapping[str, Any], ending: str = "") -> dict[str, Any]:
    """With one column `probability_<label>` in place of `probabilities`, for tables."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if name == f"probabilities{ending}" and isinstance(value, dict):
            flat |= {f"probability_{label}{ending}": p for label, p in value.items()}
        else:
            flat[name] = value
    return flat


@contextmanager
def output_file(path: Path, inputs: str | None, overwrite: bool) -> Iterator[Path]:
    """Where to write the file, which gets its name when it is whole.

    Args:
        inputs: file that is read.

    Raises:
        UserError: an unknown kind of file, the input file itself, one that exists, or a place where
            nothing can be written.
    """
    from toolkit.disk import written_whole

    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(
            f"--output {path}: unknown kind of file; expected one of {', '.join(SUFFIXES)}."
            f"{near_names(suffix, SUFFIXES)}"
        )
    if path.is_dir():
        raise UserError(f"--output {path} is a folder; expected a file.")
    if path.exists():
        if inputs not in (None, "-") and os.path.samefile(path, Path(str(inputs)).expanduser()):
            raise UserError(f"--output {path} is the file that is read: choose another name.")
        if not overwrite:
            raise UserError(f"--output {path} exists already. Write over it: --overwrite.")
    with ExitStack() as stack:
        try:
            partial = stack.enter_context(written_whole(path))
        except OSError as error:
            raise UserError(f"--output {path}: {_cannot_write(error)}") from error
        yield partial


def _cannot_write(error: OSError) -> str:
    return f"cannot be written: {error.strerror or first_line(error)}."


def write_records(
    records: Sequence[Mapping[str, Any]], path: Path, suffix: str, ending: str = ""
) -> None:
    """Write records by the suffix of the file's name.

    csv, tsv and parquet have a column `probability_<label>` for each label; lists are JSON in csv
    and tsv. json is a list of objects, jsonl one a line, both with an object `probabilities`. txt
    has the prediction alone, one a line.

    Raises:
        UserError: values that such a file cannot hold, or the disk is full.
    """
    try:
        if suffix == ".parquet":
            _write_parquet([flattened(record, ending) for record in records], path)
        else:
            _write_text(records, path, suffix, ending)
    except OSError as error:
        raise UserError(f"{path}: {_cannot_write(error)}") from error


def _write_text(records: Sequence[Mapping[str, Any]], path: Path, suffix: str, ending: str) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
        if suffix in (".csv", ".tsv"):
            _write_table([flattened(record, ending) for record in records], stream, suffix)
        elif suffix == ".txt":
            for record in records:
                stream.write(_one_line(record.get(f"prediction{ending}")) + "\n")
        elif suffix == ".jsonl":
            write_json_lines(records, stream)
        else:
            lines = ",\n".join(map(to_json, records))
            stream.write(f"[\n{lines}\n]\n")


def write_json_lines(records: Sequence[Mapping[str, Any]], stream: TextIO) -> None:
    """One JSON object a line."""
    for record in records:
        stream.write(to_json(record) + "\n")


def to_json(record: Any) -> str:
    """A record on one line; dates and the like as texts."""
    return json.dumps(without_nan(record), ensure_ascii=False, default=str)


def _write_table(records: Sequence[Mapping[str, Any]], stream: TextIO, suffix: str) -> None:
    names = list(dict.fromkeys(key for record in records for key in record))
    names.sort(key=lambda name: name.startswith(NOTE))  # which few rows have: the last
    rows = [[_cell(record.get(name)) for name in names] for record in records]
    if suffix == ".csv":
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
        return
    for row in [names, *rows]:
        stream.write("\t".join(map(_one_line, row)) + "\n")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, dict)):
        return to_json(value)
    return str(value)


def _one_line(value: Any) -> str:
    return re.sub(r"[\t\n\r]+", " ", _cell(value))


def _write_parquet(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    names = list(dict.fromkeys(key for record in records for key in record))
    names.sort(key=lambda name: name.startswith(NOTE))
    columns = {}
    for name in names:
        values = [record.get(name) for record in records]
        try:
            columns[name] = pyarrow.array(values)
        except (pyarrow.ArrowException, TypeError, ValueError) as error:
            raise UserError(
                f"column {name!r} holds values of several kinds, which a .parquet file cannot "
                f"({first_line(error)}): write .jsonl."
            ) from error
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
