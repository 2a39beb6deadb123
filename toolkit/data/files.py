"""Tables from files: csv, tsv, json, json lines and parquet, plain or gzipped, read strictly.

Every cell arrives as it was written (`NA`, `null` and `nan` are words); a file that is not
well-formed is refused with its name and the line.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolkit.data.delimited import read_csv, read_tsv
from toolkit.data.encoding import decode
from toolkit.data.file_log import note_file
from toolkit.data.suggest import near_names
from toolkit.data.table import Table
from toolkit.errors import UserError


class NotRecordsError(UserError):
    """A line or row that is no JSON object."""


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
    if path.is_symlink() and not path.exists():
        raise UserError(f"{path} is a link to {os.readlink(path)}, where nothing is.")
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise UserError(f"no such file or folder: {path}.{near_names(path.name, siblings)}")


def _read_json_lines(content: bytes, path: Path) -> Table:
    """One JSON object a line; only a line feed ends a line (U+2028 may stand inside a text)."""
    records, lines = [], []
    for number, line in enumerate(decode(content, path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(_parse(line))
        except json.JSONDecodeError as error:
            raise NotRecordsError(
                f"{path}, line {number}: not JSON ({error.msg} at character {error.pos + 1})."
            ) from error
        lines.append(number)
    return _table_of_records(records, path, "line", lines)


def _read_json(content: bytes, path: Path) -> Table:
    """A list of objects, or such a list under the key "data" (as SQuAD files have it)."""
    try:
        parsed = _parse(decode(content, path))
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one object a line under the name .json
            return _read_json_lines(content, path)
        raise UserError(
            f"{path}, line {error.lineno}, character {error.colno}: not JSON ({error.msg})."
        ) from error
    records = _records(parsed, path) if isinstance(parsed, dict) else parsed
    if not isinstance(records, list):
        raise UserError(f"{path}: expected a list of objects such as {_EXAMPLE_RECORD}.")
    return _table_of_records(records, path, "row", list(range(1, len(records) + 1)))


def _parse(text: str) -> Any:
    """A JSON value.

    Raises:
        json.JSONDecodeError: it is none, or none that can be read.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise json.JSONDecodeError("lists in lists, too deep", text, 0) from None
    except ValueError:
        raise json.JSONDecodeError("a number of thousands of digits", text, 0) from None


def _records(parsed: dict[str, Any], path: Path) -> Any:
    """The rows in an object: under the key "data", or by column as pandas writes them by default,
    `{"text": {"0": "很好"}, "label": {"0": 1}}`; else it is the only row itself.

    Raises:
        UserError: it holds several splits.
    """
    if "data" in parsed:
        return parsed["data"]
    splits = [name for name, rows in parsed.items() if isinstance(rows, list) and _are_rows(rows)]
    if "train" in splits:
        raise UserError(
            f"{path} holds several splits ({', '.join(splits)}). Write each into a file of its "
            f"own, train.json and so on, and name their folder."
        )
    columns = list(parsed.values())
    if not columns or not all(isinstance(column, dict) and column for column in columns):
        return [parsed]
    rows = list(columns[0])
    if not all(row.isdigit() for row in rows) or any(list(column) != rows for column in columns):
        return [parsed]
    return [{name: column[row] for name, column in parsed.items()} for row in rows]


def _are_rows(rows: list[Any]) -> bool:
    return bool(rows) and all(isinstance(row, dict) for row in rows)


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
        file = pq.ParquetFile(io.BytesIO(content))
        names = file.schema_arrow.names
        if len(set(names)) < len(names):
            raise UserError(f"{path}: two columns have the same name: {', '.join(names)}.")
        table = file.read()
        columns = {name: table.column(name).to_pylist() for name in names}
        class_names = _class_names(table.schema)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} is not a readable parquet file: {error}") from error
    if not table.num_rows:
        raise UserError(f"{path} holds no rows.")
    for name, classes in class_names.items():
        columns[name] = _name_classes(columns[name], name, classes, path)
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
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".json": _read_json,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".parquet": _read_parquet,
}
