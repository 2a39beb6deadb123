"""Files that are whole or absent, whatever happens while they are written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def sync(path: Path) -> None:
    """Flush a file or folder to the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, text: str) -> None:
    """Write a text file under another name first, flush it, then give it its own."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    sync(partial)
    partial.rename(path)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Gives another name to write a file under, and the file its own name once that is done.

    The other name is made at once, so that a place where nothing can be written shows before the
    work. After an error nothing is left.

    Raises:
        OSError: nothing can be written there.
    """
    partial = path.with_name(path.name + ".partial")
    partial.touch()
    try:
        yield partial
        sync(partial)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
