"""Large data sets are read, checked and split once, and found again by the content of their files.

What was said while they were read is said again. A file with another name or date and the same
content is the same; another setting, another content or other code of `toolkit.data` is not.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import unidata_version

from toolkit.console import keep_remarks, notify
from toolkit.data.arrow_files import (
    LARGE,
    code_of_data,
    kept,
    open_rows,
    remove_unused,
    write_dataset,
)
from toolkit.data.cache import CannotKeepError
from toolkit.data.file_log import FileRead, files_read, note_file
from toolkit.data.files import data_suffix
from toolkit.disk import sha256_of
from toolkit.errors import UserError
from toolkit.progress import working

if TYPE_CHECKING:
    from toolkit.data.text_classification import TextClassificationData

SPLITS = ("train", "validation", "test")
_ABOUT = "about.json"


def prepared_once(
    places: Sequence[str],
    files: Sequence[Path],
    settings: Sequence[Any],
    prepare: Callable[[], TextClassificationData],
) -> TextClassificationData:
    """What `prepare` gives: made anew from small files, else kept on the disk and read from there.

    Args:
        places: files or folders as the user named them; what is said may hold these names.
        files: all that is read.
        settings: everything else the result depends on; plain values.

    Raises:
        UserError: as `prepare`; nothing is kept then. Or a file changes meanwhile.
    """
    if sum(file.stat().st_size for file in files) < LARGE:
        return prepare()
    names = [str(Path(place).expanduser()) for place in places]
    try:
        with working(f"looking for {names[0]} in the cache"):
            key = _key(names, files, settings)
    except OSError:  # a file that cannot be read, which `prepare` says
        return prepare()

    def build(folder: Path) -> None:
        notify(f"{names[0]}: read once, and kept in {folder.parent} for the next time.")
        with working(f"reading and checking {names[0]}"):
            _save(folder, names, prepare)
            if _key(names, files, settings) != key:
                raise UserError(
                    f"{', '.join(names)} changed while it was read. Wait until nobody writes to it."
                )
        remove_unused(folder.parent)

    try:
        return kept(f"texts/{key}", build, lambda folder: _open(folder, names))
    except CannotKeepError as error:
        notify(f"warning: {error} Until then it is read anew every time.")
        return prepare()


def _key(names: Sequence[str], files: Sequence[Path], settings: Sequence[Any]) -> str:
    """Of contents, kinds and parts: what a file is called counts inside a folder only."""
    parts = [[_part(file, names), sha256_of(file)] for file in files]
    content = json.dumps([code_of_data(), unidata_version, parts, settings])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _part(file: Path, names: Sequence[str]) -> list[Any]:
    if str(file) in names:
        return [names.index(str(file)), data_suffix(file), file.suffix.lower() == ".gz"]
    return [file.name, str(file) == file.name]  # of the folder ".", which no message names


def _save(folder: Path, names: Sequence[str], prepare: Callable[[], Any]) -> None:
    said: list[str] = []
    log: dict[str, FileRead] = {}
    try:
        with files_read() as log, keep_remarks() as said:
            data = prepare()
    except UserError:  # what had been noticed by then helps to understand it
        _say(said, list(map(asdict, log.values())))
        raise
    for split in SPLITS:
        write_dataset(folder / f"{split}.arrow", getattr(data, split))
    about = {
        "label_names": data.label_names,
        "summary": data.summary,
        "remarks": [_unnamed(remark, names) for remark in said],
        "files": [asdict(replace(file, path=_unnamed(file.path, names))) for file in log.values()],
    }
    (folder / _ABOUT).write_text(json.dumps(about), encoding="utf-8")


def _open(folder: Path, names: Sequence[str]) -> TextClassificationData:
    from toolkit.data.text_classification import TextClassificationData

    about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
    splits = {split: open_rows(folder / f"{split}.arrow") for split in SPLITS}
    if {split: len(rows) for split, rows in splits.items()} != about["summary"]["sizes"]:
        raise ValueError("rows are missing")
    files = [{**file, "path": _named(file["path"], names)} for file in about["files"]]
    _say([_named(remark, names) for remark in about["remarks"]], files)
    return TextClassificationData(
        **splits, label_names=about["label_names"], summary=about["summary"]
    )


def _say(remarks: Sequence[str], files: Sequence[Mapping[str, Any]]) -> None:
    for file in files:
        facts = {name: fact for name, fact in file.items() if fact is not None and name != "path"}
        note_file(Path(file["path"]), **facts)
    for remark in remarks:
        notify(remark)


def _unnamed(text: str, names: Sequence[str]) -> str:
    """The text with the number of a file in place of its name, which may be another next time.

    The name of a folder stands in front of a file only; anywhere else it is a word like any other.
    """
    longest_first = sorted({*names}, key=lambda name: (-len(name), name))
    ends = {name: "(?=/)" if Path(name).is_dir() else r"(?!\w)" for name in longest_first}
    patterns = [re.escape(name) + ends[name] for name in longest_first]
    return re.sub(
        rf"(?<![\w/])(?:{'|'.join(patterns)})",
        lambda found: f"\0{names.index(found[0])}\0",
        text,
    )


def _named(text: str, names: Sequence[str]) -> str:
    for number, name in enumerate(names):
        text = text.replace(f"\0{number}\0", name)
    return text
