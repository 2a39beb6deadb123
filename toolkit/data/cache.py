"""Build something once on this machine: never half-written, never twice at the same time."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from toolkit.console import notify
from toolkit.disk import sync
from toolkit.errors import UserError


class CannotKeepError(UserError):
    """The cache folder cannot be written, is full, or holds what is damaged."""


def cache_root() -> Path:
    """This toolkit's folder in the user's cache (`$XDG_CACHE_HOME` or `~/.cache`)."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "scratch-models-toolkit"


def build_once(name: str, build: Callable[[Path], None]) -> Path:
    """Return the cached folder `name`; where it is missing, `build(folder)` fills it first.

    `build` writes into a temporary folder that gets its final name only when everything is on the
    disk. Processes that ask at the same time wait for the one that builds.

    Raises:
        CannotKeepError: the cache folder cannot be written.
    """
    target = cache_root() / name
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target):
            if not target.is_dir():
                _build_into(target, build)
    except OSError as error:
        raise CannotKeepError(
            f"cannot write {target} ({error.strerror or error}). Free some space there, or point "
            "XDG_CACHE_HOME to a folder that can be written."
        ) from error
    return target


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Hold the lock of what is built; say so where another process does."""
    lock = FileLock(f"{target}.lock")
    try:
        lock.acquire(timeout=2)
    except Timeout:
        notify(f"waiting for another process that prepares {target} ...")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _build_into(target: Path, build: Callable[[Path], None]) -> None:
    """Build beside the target and rename; called with the lock held."""
    prefix = f".{target.name}.incomplete-"
    for left_by_a_killed_build in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(left_by_a_killed_build, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        build(temporary)
        for path in [temporary, *temporary.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)  # temporary files are made private
            sync(path)
        temporary.rename(target)
        sync(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
