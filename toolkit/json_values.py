"""Values that JSON can hold."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolkit.errors import UserError


def without_nan(value: Any) -> Any:
    """The value with None for what JSON has no number for: NaN and infinity, at any depth."""
    if isinstance(value, dict):
        return {key: without_nan(part) for key, part in value.items()}
    if isinstance(value, list):
        return [without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested values one by one, under dotted names such as "train.epochs"."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def check_writable(path: str | None, option: str = "--json") -> None:
    """See, before the work, that what the option names can be written; None and "-" always can.

    Raises:
        UserError: a folder, a file in a folder that is not there, or no right to write.
    """
    if path is None or path == "-":
        return
    file = Path(path)
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise UserError(f"{option} {path}: expected a file in a folder that exists.")
    if not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
        raise UserError(f"{option} {path}: no right to write there.")


def check_folder(path: str | None) -> None:
    """See, before the work, that files can be written to the folder --output names; makes it.

    Raises:
        UserError: it is a file, or cannot be made or written to.
    """
    if path is None:
        return
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--output {path}: cannot make the folder: {error.strerror}") from error
    if not os.access(path, os.W_OK):
        raise UserError(f"--output {path}: no right to write there.")


def write_json(content: Any, path: str) -> None:
    """Write what a command says as JSON to a file, or print it where the path is "-".

    Raises:
        UserError: the file cannot be written.
    """
    text = json.dumps(without_nan(content), ensure_ascii=False, indent=1, allow_nan=False)
    write_text(text, path)


def write_text(text: str, path: str) -> None:
    """Write a text and a line end to a file, or print it where the path is "-".

    Raises:
        UserError: the file cannot be written.
    """
    if path == "-":
        print(text)
        return
    try:
        Path(path).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error


def read_object(file: Path) -> dict[str, Any]:
    """The object of a JSON file.

    Raises:
        UserError: it cannot be read, or holds something else.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {error}. Was it cut off or edited?") from error
    if not isinstance(content, dict):
        raise UserError(f"{file}: expected a JSON object, found a {type(content).__name__}.")
    return content


def read_object_if_there(file: Path) -> dict[str, Any]:
    """As `read_object`; empty where there is no such file."""
    return read_object(file) if file.is_file() else {}
