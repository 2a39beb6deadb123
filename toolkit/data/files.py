"""Tables from files: csv, tsv, json, json lines and parquet, plain or gzipped, read strictly.

Every cell arrives as it was written (`NA`, `null` and `nan` are words); a file that is not
well-formed is refused with its name and the line.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit.console import notify
from toolkit.data.encoding import decode
from toolkit.data.file_log import note_file
from toolkit.data.suggest import near_names
from toolkit.errors import UserError


class NotRecordsError(UserError):
    """A line or row that is no JSON object."""


@dataclass(frozen=True)
class Table:
    """Columns of equal length. `places[i]` says where row i stands: "file, line 7"."""

    columns: dict[str, list[Any]]
    source: str
    unit: str  # what `positions` counts: "line" or "row"
    positions: Sequence[int]
    class_names: dict[str, list[str]] = field(default_factory=dict)  # of columns that declare them

    def __len__(self) -> int:
        return len(self.positions)

    def place(self, row: int) -> str:
        """Where row `row` (0-based) stands, for messages."""
        return f"{self.source}, {self.unit} {self.positions[row]}"


def read_table(path: str | Path) -> Table:
    """Read one file by its name: .csv .tsv .json .jsonl .ndjson .parquet, each also with .gz.

    Raises:
        UserError: no such file, an unknown kind, an empty or a malformed file; names the line.
    """
    path = Path(path)
    check_exists(path)
    suffix = data_suffix(path)
    if suffix is None:
        excel = path.suffix.lower() in SPREADSHEETS
        advice = " Save the sheet as 'CSV UTF-8' from the program that made it." if excel else ""
        raise UserError(
            f"{path} is of an unknown kind; expected one of {', '.join(_READERS)} (or .gz).{advice}"
        )
    note_file(path, format=suffix.removeprefix("."))
    table = _READERS[suffix](read_bytes(path), path)
    note_file(path, rows=len(table))
    return table


SPREADSHEETS = (".xls", ".xlsx", ".xlsm", ".ods", ".numbers", ".et")
"""Files that people take for tables; they are refused."""


def parse_table(content: bytes, suffix: str, source: str) -> Table:
    """Read a table that is at hand already, such as standard input.

    Args:
        suffix: of a file that held it, such as ".csv".
        source: what messages call it.

    Raises:
        UserError: as `read_table`.
    """
    if not content.strip():
        raise UserError(f"{source} is empty.")
    return _READERS[suffix](content, Path(source))


def data_suffix(path: Path) -> str | None:
    """The suffix that says how to read a file (".csv" for "a.csv.gz"), None for other files."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in _READERS else None


def read_bytes(path: Path) -> bytes:
    """Content of a file, unpacked where its name ends in .gz.

    Raises:
        UserError: no such file (names near ones), unreadable, or empty.
    """
    content = read_raw(path)
    if not content.strip():
        raise UserError(f"{path} is empty.")
    return content


def read_raw(path: Path) -> bytes:
    """As `read_bytes`, of a file that may be empty.

    Raises:
        UserError: no such file (names near ones), or unreadable.
    """
    check_exists(path)
    try:
        content = path.read_bytes()
        if path.suffix.lower() == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    return content


def check_exists(path: Path) -> None:
    """Refuse a path that leads nowhere.

    Raises:
        UserError: names its neighbours.
    """
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise UserError(f"no such file or folder: {path}.{near_names(path.name, siblings)}")


_MARK = re.compile('("?)sep=([^\r\n"])\\1\r?\n', re.IGNORECASE)
"""A first line by which Excel tells itself what separates fields."""


def _read_csv(content: bytes, path: Path) -> Table:
    """RFC 4180: a field in quotes may hold commas, doubled quotes and line ends.

    Where a header has semicolons and no comma these separate, as Excel writes it wherever the comma
    stands in numbers; or what a first line such as ``sep=;`` names.
    """
    csv.field_size_limit(
        min(sys.maxsize, 2**31 - 1)
    )  # the default refuses texts above 131,072 bytes
    text = decode(content, path)
    del content  # as large as the file
    if "\r" in text and "\n" not in text:
        raise UserError(
            f"{path}: its lines end in carriage returns alone, as old Macs wrote them. "
            f"For example: tr '\\r' '\\n' < {path.name} > mended-{path.name}"
        )
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
            f"{path}, line {first_line}: not well-formed CSV ({error}). A field that holds a "
            f"{_name(delimiter)}, a quote or a line end must stand in quotes, and a quote "
            "inside it be doubled."
        ) from error


def _lines(text: str, start: int = 0) -> Iterator[str]:
    """Lines with their ends, without a copy of the whole."""
    while (end := text.find("\n", start)) >= 0:
        yield text[start : end + 1]
        start = end + 1
    if start < len(text):  # what follows the last line end is no line where it is nothing
        yield text[start:]


def _read_tsv(content: bytes, path: Path) -> Table:
    """One row a line, fields separated by tabs, no quoting: quotes are part of the text."""
    text = decode(content, path)
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


def _read_json_lines(content: bytes, path: Path) -> Table:
    """One JSON object a line; only a line feed ends a line (U+2028 may stand inside a text)."""
    records, lines = [], []
    for number, line in enumerate(decode(content, path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise NotRecordsError(
                f"{path}, line {number}: not JSON ({error.msg} at character {error.pos + 1})."
            ) from error
        lines.append(number)
    return _table_of_records(records, path, "line", lines)


def _read_json(content: bytes, path: Path) -> Table:
    """A list of objects, or such a list under the key "data" (as SQuAD files have it)."""
    try:
        parsed = json.loads(decode(content, path))
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one object a line under the name .json
            return _read_json_lines(content, path)
        raise UserError(
            f"{path}, line {error.lineno}, character {error.colno}: not JSON ({error.msg})."
        ) from error
    records = parsed.get("data", [parsed]) if isinstance(parsed, dict) else parsed
    if not isinstance(records, list):
        raise UserError(f"{path}: expected a list of objects such as {_EXAMPLE_RECORD}.")
    return _table_of_records(records, path, "row", list(range(1, len(records) + 1)))


_EXAMPLE_RECORD = '{"text": "很好", "label": 1}'


def _table_of_records(records: list[Any], path: Path, unit: str, positions: list[int]) -> Table:
    if not records:
        raise UserError(f"{path} holds no rows.")
    names: dict[str, None] = {}
    for record, position in zip(records, positions, strict=True):
        if not isinstance(record, dict):
            raise NotRecordsError(
                f"{path}, {unit} {position}: found {json.dumps(record, ensure_ascii=False)[:60]}, "
                f"expected an object such as {_EXAMPLE_RECORD}."
            )
        names.update(dict.fromkeys(record))
    columns = {name: [record.get(name) for record in records] for name in names}
    return Table(columns, str(path), unit, positions)


def _read_parquet(content: bytes, path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(content))
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        class_names = _class_names(table.schema)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} is not a readable parquet file: {error}") from error
    if not table.num_rows:
        raise UserError(f"{path} holds no rows.")
    for name, names in class_names.items():
        columns[name] = _name_classes(columns[name], name, names, path)
    positions = list(range(1, table.num_rows + 1))
    return Table(columns, str(path), "row", positions, class_names)


def _name_classes(cells: list[Any], column: str, names: list[str], path: Path) -> list[Any]:
    found = []
    for row, cell in enumerate(cells, start=1):
        try:
            found.append(named(cell, names))
        except IndexError:
            raise UserError(
                f"{path}, row {row}: {column} is {cell}, but the file names {len(names)} classes "
                f"only (0 to {len(names) - 1}): {', '.join(names)[:100]}."
            ) from None
    return found


def named(cell: Any, names: list[str]) -> Any:
    """Names for class ids, also in a list; None for -1 (unpublished)."""
    if isinstance(cell, list):
        return [named(item, names) for item in cell]
    return names[cell] if cell is not None and cell >= 0 else None


def _class_names(schema: Any) -> dict[str, list[str]]:
    """Names of the classes of every column of ids or lists of ids, where `datasets` wrote them."""
    import pyarrow as pa

    if b"huggingface" not in (schema.metadata or {}):
        return {}
    features = (json.loads(schema.metadata[b"huggingface"]).get("info") or {}).get("features") or {}
    found = {}
    for column in schema:
        feature, kind = features.get(column.name) or {}, column.type
        if isinstance(feature, dict) and "feature" in feature and pa.types.is_list(kind):
            feature, kind = feature["feature"], kind.value_type
        if (
            isinstance(feature, dict)
            and feature.get("_type") == "ClassLabel"
            and feature.get("names")
            and pa.types.is_integer(kind)
        ):
            found[column.name] = feature["names"]
    return found


_READERS: dict[str, Callable[[bytes, Path], Table]] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".json": _read_json,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".parquet": _read_parquet,
}
