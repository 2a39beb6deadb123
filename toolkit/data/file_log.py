"""Which files were read, and how: noted by the readers for those who ask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path


@dataclass
class FileRead:
    """One file. A file that is refused half-way has what was known of it by then."""

    path: str
    format: str | None = None  # csv, tsv, json, jsonl, ndjson, parquet, conll, lines
    encoding: str | None = None  # of text files
    delimiter: str | None = None  # of csv and tsv
    rows: int | None = None  # of a CoNLL file sentences, of lines the lines
    blank: int | None = None  # of parallel files: lines that show nothing


_log: ContextVar[dict[str, FileRead] | None] = ContextVar("files_read", default=None)


@contextmanager
def files_read() -> Iterator[dict[str, FileRead]]:
    """Files that are read inside the block, by path."""
    log: dict[str, FileRead] = {}
    token = _log.set(log)
    try:
        yield log
    finally:
        _log.reset(token)


def note_file(path: Path, **facts: str | int) -> None:
    """Add facts (fields of `FileRead`) about a file, where somebody asks."""
    log = _log.get()
    if log is not None:
        file = log.setdefault(str(path), FileRead(str(path)))
        for name, value in facts.items():
            setattr(file, name, value)
