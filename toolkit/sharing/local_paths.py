"""What is published says nothing of the machine it was made on: paths become file names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from toolkit.data.files import data_suffix

# An absolute path, or one that begins at the home folder, in running text; no part of an address.
_IN_TEXT = re.compile(r"(?<![\w.:/\\])(?:~|[A-Za-z]:)?[/\\](?:[\w.+@-]+[/\\])*[\w.+@-]+")


def without_paths(value: Any) -> Any:
    """The JSON value with every local path in it, at any depth, cut to the name of its file."""
    if isinstance(value, dict):
        return {key: without_paths(part) for key, part in value.items()}
    if isinstance(value, list):
        return [without_paths(part) for part in value]
    return _short(value) if isinstance(value, str) else value


def without_paths_in_command(command: str) -> str:
    """A command line with its paths cut; that of the recipe is the same for everybody."""
    try:
        words = shlex.split(command)
    except ValueError:  # a quote is missing: no command line after all
        return str(without_paths(command))
    return shlex.join(map(_short_word, words))


def _short_word(word: str) -> str:
    if re.fullmatch(r"recipes/\w+\.py", word):
        return word
    option, equals, value = word.partition("=")
    if equals and option.startswith("--"):
        return f"{option}={_short(value)}"
    return _short(word)


def _short(text: str) -> str:
    if _is_path(text):
        name = PureWindowsPath(text).name if "\\" in text else PurePosixPath(text).name
        return name or "."
    return _IN_TEXT.sub(lambda found: re.split(r"[/\\]", found[0])[-1], text)


def _is_path(text: str) -> bool:
    """Whether the whole text is a path; not "owner/name", which may stand on the Hub."""
    if "\n" in text or len(text) > 1000 or not re.search(r"[/\\]", text) or "://" in text:
        return False
    if re.match(r"(/|~|\.\.?[/\\]|[A-Za-z]:[/\\])", text):
        return " /" not in text  # a sentence that begins with a path
    return data_suffix(Path(text)) is not None or (
        re.fullmatch(r"[^\s/]+(/[^\s/]+){2,}/?", text) is not None
    )
