"""Files that are whole or absent, whatever happens while they are written."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""No space, no more of it for this user, or a limit to the size of a file."""


def free_space(folder: Path) -> int:
    """Bytes free where a folder is, or would be made."""
    existing = next(path for path in [folder, *folder.absolute().parents] if path.is_dir())
    return shutil.disk_usage(existing).free


def sha256_of(file: Path) -> str:
    """Of its content, in hexadecimal digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_full(error: BaseException) -> bool:
    """Whether a file could not be written because there is no room for it.

    safetensors and others written in Rust tell the number of the system's error in words.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in FULL
    told = re.search(r"\(os error (\d+)\)", str(error))
    return told is not None and int(told[1]) in FULL


def cannot_write(error: BaseException) -> bool:
    """Whether it is the disk's or the file system's: full, without rights, or gone.

    PyTorch tells nothing of the system's error when it cannot write a file.
    """
    if isinstance(error, RuntimeError):
        told = re.search(r"PytorchStreamWriter|iostream|unexpected pos", str(error))
        return told is not None or is_full(error)
    return isinstance(error, OSError) or is_full(error)


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


def append_whole(path: Path, text: str) -> None:
    """Append to a file; after an error it is as long as it was.

    Raises:
        OSError: nothing can be written there.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        length, left = os.fstat(descriptor).st_size, text.encode()
        try:
            while left:
                left = left[os.write(descriptor, left) :]
        except OSError:
            os.ftruncate(descriptor, length)
            raise
    finally:
        os.close(descriptor)


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
