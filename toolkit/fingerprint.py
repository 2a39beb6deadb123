"""Has the code changed? A hash that says so."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def fingerprint(root: Path, folders: Iterable[str]) -> str:
    """SHA-256 over the Python files of folders below `root`: equal code, equal hash.

    Args:
        root: what file names are told relative to.
        folders: in the order they are read; a folder that is not there holds no files.
    """
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted((root / folder).rglob("*.py")):
            digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
