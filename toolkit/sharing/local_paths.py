"""What is published says nothing of the machine it was made on: paths become file names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from toolkit.data.files import data_suffix

_ADDRESS = re.compile(r"""\b(file(?=:/)|[A-Za-z][A-Za-z0-9+.-]*(?=://)):/[^\s"'<>]+""")
_LOGIN = re.compile(r"(?<=://)[^/\s?#]*@")
_BEGIN = r"(?:[A-Za-z]:[/\\]+|\\\\(?=\w)|~(?:[a-z][\w-]*)?/|/)"
_WORD = r"[^\s/\\\"'`<>|:;,，。；：、（）]+"
_NAME = r"[\w.+@%~-]*[\w+%~-]"
# Folders with spaces in their names; a word with a suffix ends the path ("/a/x.csv and b/c").
_SPACED = rf"(?:(?:(?!\S*\.\w{{1,5}}\s){_WORD} ){{0,3}}{_WORD}[/\\]+)+{_NAME}\.[A-Za-z0-9]{{1,5}}\b"
# An absolute path, or one that begins at a home folder, in running text: no part of an address, of
# a tag ("</s>") or of words with slashes ("en/de/fr").
_IN_TEXT = re.compile(
    rf"(?<![\w.:/\\<)\]}}~-])(?:{_BEGIN}{_SPACED}|/(?:{_WORD}[/\\]+)+{_NAME}"
    rf"|(?!/){_BEGIN}(?:{_WORD}[/\\]+)*{_NAME})"
)
# Likewise where only machines of people have it; also behind a Chinese character.
_ROOT = r"(?:(?:home|Users|mnt|media|scratch)[/\\]+[^\s/\\]+|root|data)"
_OF_A_MACHINE = re.compile(
    r"(?:\bfile:/*|(?<![A-Za-z0-9_.:/\\<)\]}~-]))(?:[A-Za-z]:)?"
    rf"[/\\]+(?={_ROOT}[/\\]+[^\s/\\])(?:{_SPACED}|(?:{_WORD}[/\\]+)+{_NAME})"
)
# Settings and facts whose value may be a path that begins at the working folder.
_PLACES = re.compile(r"dataset|model|name|(?:\w+_)?(?:file|dir|folder|path)")


def without_paths(value: Any, key: str = "") -> Any:
    """The JSON value with every local path in it, at any depth, cut to the name of its file.

    Texts lose absolute paths, and those that exist on this machine; what stands for a data set, a
    model or a file also loses relative ones. No login is left in an address.

    Args:
        key: of the setting whose value it is.
    """
    if isinstance(value, dict):
        return {name: without_paths(part, str(name)) for name, part in value.items()}
    if isinstance(value, list):
        return [without_paths(part, key) for part in value]
    place = _PLACES.fullmatch(key) is not None
    return _short(value, place=place) if isinstance(value, str) else value


def without_paths_in_command(command: str) -> str:
    """A command line with its paths cut; that of the recipe is the same for everybody."""
    try:
        words = shlex.split(command)
    except ValueError:  # a quote is missing: no command line after all
        return str(without_paths(command))
    short, place = [], True
    for word in words:
        option, equals, value = word.partition("=")
        if not option.startswith("--"):
            short.append(_short_word(word, place=place))
            continue
        place = _PLACES.fullmatch(option.rpartition(".")[2].lstrip("-")) is not None
        short.append(f"{option}={_short(value, place=place)}" if equals else word)
    return shlex.join(short)


def path_of_a_machine(text: str) -> str | None:
    """The first thing in a text that only a path on somebody's machine looks like."""
    found = _OF_A_MACHINE.search(text)
    return None if found is None else found[0]


def without_logins(text: str) -> str:
    """The text without the user and the password in its addresses."""
    return _ADDRESS.sub(lambda found: _LOGIN.sub("", found[0]), text)


def _short_word(word: str, *, place: bool) -> str:
    return word if re.fullmatch(r"recipes/\w+\.py", word) else _short(word, place=place)


def _short(text: str, *, place: bool) -> str:
    if _is_path(text, place=place):
        return _name(text) or "."
    text = _ADDRESS.sub(_short_address, text)
    text = _IN_TEXT.sub(lambda found: _name(found[0]), text)
    return _OF_A_MACHINE.sub(lambda found: _name(found[0]), text)


def _short_address(found: re.Match[str]) -> str:
    if found[1].lower() == "file":
        return _name(found[0])
    return _LOGIN.sub("", found[0])


def _name(path: str) -> str:
    return PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name


def _is_path(text: str, *, place: bool) -> bool:
    """Whether the whole text is a path; not "owner/name", which may stand on the Hub."""
    if "\n" in text or len(text) > 1000 or not re.search(r"[/\\]", text) or "://" in text:
        return False
    is_file = data_suffix(Path(text)) is not None
    if re.match(_BEGIN, text) and " /" not in text:  # else a sentence that begins with a path
        return place or is_file or not re.search(r"\s", text) or _exists(text)
    if not place:
        return _exists(text)
    return (
        re.match(r"\.\.?[/\\]", text) is not None
        or is_file
        or re.fullmatch(r"[^\s/]+(/[^\s/]+){2,}/?", text) is not None
    )


def _exists(text: str) -> bool:
    try:
        return Path(text).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # too long, a null, nobody's home
        return False
