"""Files that are whole or absent, whatever happens while they are written."""

from __future__ import annotations

import os
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
