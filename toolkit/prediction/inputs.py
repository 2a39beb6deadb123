"""Rows to be answered: words of the command line, files, folders of images, standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.data.encoding import decode
from toolkit.data.files import NotRecordsError, data_suffix, parse_table, read_raw, read_table
from toolkit.data.image_sources import IMAGE_SUFFIXES, is_visible
from toolkit.errors import UserError

FORMATS = ("lines", "csv", "tsv", "json", "jsonl")
"""How standard input, or a file whose name does not tell, can be read."""
_STDIN = "standard input"


@dataclass(frozen=True)
class Inputs:
    """Rows with the columns they came with.

    Args:
        columns: by name, in the order of the source, all of one length.
        place: where a row stands, for messages.
        source: what messages call all of it.
        base: folder that paths of images start from; None: the current one.
    """

    columns: dict[str, list[Any]]
    place: Callable[[int], str]
    source: str
    base: Path | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


def given_texts(texts: Sequence[str]) -> Inputs:
    """Words of the command line, in the column `text`."""
    return Inputs({"text": list(texts)}, lambda row: f"text {row + 1}", "the command line")


def given_images(paths: Sequence[str]) -> Inputs:
    """Paths on the command line, in the column `image`."""
    return Inputs({"image": list(paths)}, lambda row: paths[row], "the command line")


def read_inputs(file: str, form: str | None = None) -> Inputs:
    """Read a file, a folder of images, or standard input (`-`).

    Tables are csv, tsv, json, jsonl and parquet (also .gz); any other file is read as text, one row
    a line, empty lines too. Standard input is read likewise; it is JSON lines where its first line
    is a JSON object.

    Args:
        form: of `FORMATS`, where the name of the file does not tell.

    Raises:
        UserError: no such file, or it is empty or malformed; names the line.
    """
    if file == "-":
        content = sys.stdin.buffer.read()
        return _parse(content, form, _STDIN) if form is not None else _parse_guessed(content)
    path = Path(file).expanduser()
    if path.is_dir():
        return _read_folder(path)
    if form is not None:
        return _parse(read_raw(path), form, str(path), path.parent)
    if path.suffix.lower() in IMAGE_SUFFIXES:
        return given_images([file])
    if data_suffix(path) is None:
        return _parse(read_raw(path), "lines", str(path), path.parent)
    table = read_table(path)
    return Inputs(table.columns, table.place, table.source, path.parent)


def _parse(content: bytes, form: str, source: str, base: Path | None = None) -> Inputs:
    if form != "lines":
        table = parse_table(content, f".{form}", source)
        return Inputs(table.columns, table.place, source, base)
    lines = decode(content, Path(source)).split("\n")
    if lines[-1] == "":  # what follows the last line end is no line
        lines.pop()
    if not lines:
        raise UserError(f"{source} is empty: there is nothing to predict.")
    texts = [line.removesuffix("\r") for line in lines]
    return Inputs({"text": texts}, lambda row: f"{source}, line {row + 1}", source, base)


def _parse_guessed(content: bytes) -> Inputs:
    if not _is_json_lines(content):
        return _parse(content, "lines", _STDIN)
    try:
        return _parse(content, "jsonl", _STDIN)
    except NotRecordsError as error:
        raise UserError(
            f"{error} Read as JSON lines, as the first line is a JSON object; if every line is a "
            "text: --format lines."
        ) from error


def _is_json_lines(content: bytes) -> bool:
    import json

    first = content.lstrip().split(b"\n", 1)[0]
    try:
        return isinstance(json.loads(first), dict)
    except ValueError:
        return False


def _read_folder(folder: Path) -> Inputs:
    """All images below a folder, sorted by their paths, which are the column `image`."""
    names = [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if is_visible(path, folder) and path.suffix.lower() in IMAGE_SUFFIXES
    ]
    if not names:
        raise UserError(
            f"{folder} holds no images (files ending in {', '.join(IMAGE_SUFFIXES)}); a folder can "
            "be given for images alone."
        )
    return Inputs({"image": names}, lambda row: str(folder / names[row]), str(folder), folder)
