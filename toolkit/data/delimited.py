"""Tables of lines: csv with its quotes, tsv without any."""

from __future__ import annotations

import csv
import re
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolkit.console import notify
from toolkit.data.encoding import check_line_ends, decode
from toolkit.data.file_log import note_file
from toolkit.data.table import Table
from toolkit.errors import UserError

_MARK = re.compile('("?)sep=([^\r\n"])\\1\r?\n', re.IGNORECASE)
"""A first line by which Excel tells itself what separates fields."""


def read_csv(content: bytes, path: Path) -> Table:
    """RFC 4180: a field in quotes may hold commas, doubled quotes and line ends.

    Where a header has semicolons and no comma these separate, as Excel writes it wherever the comma
    stands in numbers; or what a first line such as ``sep=;`` names.
    """
    csv.field_size_limit(
        min(sys.maxsize, 2**31 - 1)
    )  # the default refuses texts above 131,072 bytes
    text = decode(content, path)
    del content  # as large as the file
    check_line_ends(text, path)
    start, delimiter = 0, ""
    if mark := _MARK.match(text):
        start, delimiter = mark.end(), mark[2]
        notify(f"{path}: separated by {_name(delimiter)}, as its first line says; no row.")
    else:
        header = text[: _SAMPLE + 1].lstrip().partition("\n")[0]
        delimiter = ";" if ";" in header and "," not in header else ","
    note_file(path, delimiter=delimiter)
    rows = _csv_rows(text, start, delimiter, path)
    advice = f"A text that holds a {_name(delimiter)} must stand in quotes."
    return _table_with_header(rows, path, advice, empty='is written ""')


_SAMPLE = 1 << 16  # characters a header stands in
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}


def _name(delimiter: str) -> str:
    return _DELIMITERS.get(delimiter, delimiter)


def _csv_rows(text: str, start: int, delimiter: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows with the line each begins in, from character `start`, which begins a line."""
    before = text.count("\n", 0, start)
    first_line = before + 1
    # A line ends at "\n" alone; csv itself refuses a carriage return outside of quotes.
    reader = csv.reader(_lines(text, start), strict=True, delimiter=delimiter)
    try:
        for row in reader:
            yield first_line, row
            first_line = reader.line_num + before + 1
    except csv.Error as error:
        raise UserError(
            f"{path}, line {first_line}: not well-formed CSV ({_reason(error)}). A field that "
            f"holds a {_name(delimiter)}, a quote or a line end must stand in quotes, and a quote "
            "inside it be doubled."
        ) from error


def _reason(error: csv.Error) -> str:
    """What csv says, but where it speaks to programmers."""
    said = str(error)
    return "a carriage return outside of quotes" if "universal-newline" in said else said


def _lines(text: str, start: int = 0) -> Iterator[str]:
    """Lines with their ends, without a copy of the whole."""
    while (end := text.find("\n", start)) >= 0:
        yield text[start : end + 1]
        start = end + 1
    if start < len(text):  # what follows the last line end is no line where it is nothing
        yield text[start:]


def read_tsv(content: bytes, path: Path) -> Table:
    """One row a line, fields separated by tabs, no quoting: quotes are part of the text."""
    text = decode(content, path)
    check_line_ends(text, path)
    note_file(path, delimiter="\t")
    stripped = (line.removesuffix("\n").removesuffix("\r") for line in _lines(text))
    rows = enumerate((line.split("\t") if line else [] for line in stripped), start=1)
    advice = "A text must not hold a tab or a line end."
    return _table_with_header(rows, path, advice, empty="needs .csv or .jsonl")


def _table_with_header(
    rows: Iterator[tuple[int, list[str]]], path: Path, advice: str, empty: str
) -> Table:
    """Rows below the first one. An empty line is none, unless the file has one column only: there
    it is a row with an empty cell, but for those at the end of the file, which are counted aloud.

    Args:
        rows: cells of every row with its line.
        advice: what to do where a row has another number of fields.
        empty: how an empty text at the end is written.
    """
    header = next((row for _, row in rows if row), None)
    if header is None:
        raise UserError(f"{path} is empty.")
    header = [name.strip().removeprefix("\ufeff").strip() for name in header]
    cells: list[list[Any]] = [[] for _ in header]
    positions, empty_lines = array("q"), []
    short: dict[str, str] = {}  # one string for each, such as a label, however many rows have it
    for line, row in rows:
        if not row:
            empty_lines.append(line)
            continue
        if len(header) == 1:
            cells[0] += [""] * len(empty_lines)
            positions.extend(empty_lines)
        empty_lines.clear()
        if len(row) == len(header):
            for column, cell in zip(cells, row, strict=True):
                if len(cell) <= _SHORT and len(short) < _MOST_SHORT:
                    cell = short.setdefault(cell, cell)
                column.append(cell)
            positions.append(line)
        elif len(row) > 1 or row[0].strip():  # else a line of spaces: no row
            raise UserError(
                f"{path}, line {line}: {len(row)} fields, expected {len(header)} "
                f"({', '.join(header)}). {advice}"
            )
    if not positions:
        raise UserError(f"{path} holds a header but no rows.")
    if len(header) == 1 and empty_lines:
        _say_dropped(len(empty_lines), path, empty)
    return Table(_columns(header, cells, path), str(path), "line", positions)


_SHORT, _MOST_SHORT = 16, 10_000  # characters; cells that are remembered


def _columns(header: list[str], cells: list[list[Any]], path: Path) -> dict[str, list[Any]]:
    """Cells by column; without those that have neither a name nor content, as Excel leaves them.

    Raises:
        UserError: two columns have one name.
    """
    columns: dict[str, list[Any]] = {}
    for name, column in zip(header, cells, strict=True):
        if not name and not any(map(str.strip, column)):
            continue
        if name in columns:
            raise UserError(f"{path}: two columns have the same name: {', '.join(header)}.")
        columns[name] = column
    return columns


def _say_dropped(count: int, path: Path, written: str) -> None:
    """Empty lines at the end of a file of one column could have been meant as empty texts."""
    lines = (
        "1 empty line at its end is no row"
        if count == 1
        else (f"{count:,} empty lines at its end are no rows")
    )
    notify(f"{path}: {lines} (an empty text at the end {written}).")
