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
from toolkit.prediction.output_checks import plain
from toolkit.prediction.parquet import write_parquet
from toolkit.prediction.predictor import NOTE, Answer

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".txt")


def joined(inputs: Inputs, answers: Sequence[Answer], ending: str = "") -> list[dict[str, Any]]:
    """One record per row: its own columns, then the answer's.

    Args:
        ending: put behind the name of every new column.
    """
    names = list(inputs.columns)
    rows = zip(*inputs.columns.values(), strict=True)
    return [
        {
            **dict(zip(names, map(plain, cells), strict=True)),
            **{f"{name}{ending}": value for name, value in answer.items()},
        }
        for cells, answer in zip(rows, answers, strict=True)
    ]


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
    read = None if inputs in (None, "-") else Path(str(inputs)).expanduser()
    if read is not None and path.is_file() and os.path.samefile(path, read):
        raise UserError(f"--output {path} is the file that is read: choose another name.")
    with new_file(path, "--output", SUFFIXES, overwrite) as partial:
        yield partial


@contextmanager
def new_file(path: Path, option: str, suffixes: Sequence[str], overwrite: bool) -> Iterator[Path]:
    """The same, of a file of other kinds, named by an option of the command line.

    Raises:
        UserError: an unknown kind of file, one that exists, or a place where nothing can be
            written.
    """
    from toolkit.disk import written_whole

    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise UserError(
            f"{option} {path}: unknown kind of file; expected one of {', '.join(suffixes)}."
            f"{near_names(suffix, suffixes)}"
        )
    if path.is_dir():
        raise UserError(f"{option} {path} is a folder; expected a file.")
    if path.exists() and not overwrite:
        raise UserError(f"{option} {path} exists already. Write over it: --overwrite.")
    with ExitStack() as stack:
        try:
            partial = stack.enter_context(written_whole(path))
        except OSError as error:
            raise UserError(f"{option} {path}: {_cannot_write(error)}") from error
        yield partial


def _cannot_write(error: OSError) -> str:
    return f"cannot be written: {error.strerror or first_line(error)}."


def write_records(
    records: Sequence[Mapping[str, Any]],
    path: Path,
    suffix: str,
    ending: str = "",
    line: str = "prediction",
) -> None:
    """Write records by the suffix of the file's name.

    csv, tsv and parquet have a column `probability_<label>` for each label; lists are JSON in csv
    and tsv. json is a list of objects, jsonl one a line, both with an object `probabilities`. txt
    has the answer alone, one a line, a list with spaces between its items.

    Args:
        line: name of the answer that txt has (`toolkit.prediction.output_checks.line_column`).

    Raises:
        UserError: values that such a file cannot hold, or the disk is full.
    """
    try:
        if suffix == ".parquet":
            _write_parquet([flattened(record, ending) for record in records], path)
        else:
            _write_text(records, path, suffix, ending, f"{line}{ending}")
    except OSError as error:
        raise UserError(f"{path}: {_cannot_write(error)}") from error


def _write_text(
    records: Sequence[Mapping[str, Any]], path: Path, suffix: str, ending: str, line: str
) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
        if suffix in (".csv", ".tsv"):
            _write_table([flattened(record, ending) for record in records], stream, suffix)
        elif suffix == ".txt":
            for record in records:
                value = record[line]
                value = " ".join(value) if isinstance(value, list) else value
                stream.write(_one_line(value) + "\n")
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
        writer = csv.writer(_LineFeeds(stream))  # which quotes what holds a \r or \n
        writer.writerow(names)
        writer.writerows(rows)
        return
    for row in [names, *rows]:
        stream.write("\t".join(map(_one_line, row)) + "\n")


class _LineFeeds:
    """Takes rows that end in \\r\\n and writes them with \\n."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, row: str) -> int:
        return self.stream.write(row.removesuffix("\r\n") + "\n")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, dict)):
        return to_json(value)
    return str(value)


def _one_line(value: Any) -> str:
    return re.sub(r"[\t\n\r]+", " ", _cell(value))


def _write_parquet(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    names = list(dict.fromkeys(key for record in records for key in record))
    names.sort(key=lambda name: name.startswith(NOTE))
    write_parquet({name: [record.get(name) for record in records] for name in names}, path)
