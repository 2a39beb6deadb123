"""Rows on the disk as Arrow: written batch by batch, read without loading them into memory."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import datasets
import pyarrow as pa

from toolkit.console import notify
from toolkit.data.cache import CannotKeepError, build_once
from toolkit.fingerprint import fingerprint

LARGE = 16 << 20
"""Bytes of files or rows from which it pays to keep on the disk what was made of them."""
ROWS_A_BATCH = 5_000
UNUSED_DAYS = 30

_DAMAGE = (OSError, ValueError, KeyError, pa.ArrowException)

Opened = TypeVar("Opened")


def kept(name: str, build: Callable[[Path], None], opened: Callable[[Path], Opened]) -> Opened:
    """What `opened` makes of `cache.build_once`'s folder.

    A folder that it cannot open, because files of it are missing or damaged, is built anew.

    Raises:
        CannotKeepError: as `build_once`; or a damaged folder cannot be removed.
    """
    folder = build_once(name, build)
    mark_used(folder)
    try:
        return opened(folder)
    except _DAMAGE:
        notify(f"{folder} is damaged: made anew.")
        shutil.rmtree(folder, ignore_errors=True)
    try:
        return opened(build_once(name, build))
    except _DAMAGE as error:
        raise CannotKeepError(f"{folder} is damaged ({error}). Remove it.") from error


def code_of_data() -> str:
    """A hash of the code that reads data and makes tokens of them."""
    return fingerprint(Path(__file__).parent.parent, ["data"])


def write_rows(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write an Arrow stream, as `datasets` keeps its own.

    Raises:
        OSError: it cannot be written.
    """
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)


def write_dataset(path: Path, rows: datasets.Dataset) -> None:
    """Write all columns of a data set.

    Raises:
        OSError: as `write_rows`.
    """
    table = rows.data.table
    write_rows(path, table.schema, table.to_batches(max_chunksize=ROWS_A_BATCH))


def open_rows(path: Path) -> datasets.Dataset:
    """The rows of such a file; they stay on the disk until they are asked for."""
    return datasets.Dataset.from_file(str(path))


def mark_used(folder: Path) -> None:
    """Keep what `remove_unused` would remove."""
    with suppress(OSError):  # somebody else's cache, which may be read only
        os.utime(folder)


def remove_unused(folder: Path) -> None:
    """Remove what nobody has used for `UNUSED_DAYS` from a folder of `cache.build_once`.

    What a killed process left half-written too. A process that still reads such files keeps them:
    the system removes them after it.
    """
    before = time.time() - UNUSED_DAYS * 24 * 3600
    for path in folder.glob("*"):
        if path.is_dir() and path.stat().st_mtime < before:
            shutil.rmtree(path, ignore_errors=True)
