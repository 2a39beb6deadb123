"""One run directory, one run that writes it: a lock that ends with the process that holds it."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from toolkit.console import notify
from toolkit.errors import UserError

LOCK = "run.lock"
_held: dict[Path, int] = {}  # descriptors of the lock files of this process, by run directory


def hold(directory: Path) -> None:
    """Take the lock of a run directory, until `release` or the end of this process, of any kind.

    The kernel holds it (``flock``), so a process that was killed leaves none; the file
    ``run.lock`` that it leaves says nothing. A lock that this process has already is taken anew.
    On Windows, and on file systems without locks, there is none: the latter is said.

    Raises:
        UserError: another process holds it (names process and host), or the directory cannot be
            written.
    """
    if sys.platform == "win32":
        return
    import fcntl

    place = directory.resolve()
    if (own := _held.pop(place, None)) is not None:
        os.close(own)
    while True:
        try:
            descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(f"{directory} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise UserError(
                f"{directory} is being written by {holder}. Two runs would destroy it: wait until "
                "that one has ended, or stop it first."
            ) from None
        except OSError as error:
            os.close(descriptor)
            notify(
                f"warning: {directory} cannot be locked ({error.strerror}): see to it that nobody "
                "resumes this run meanwhile"
            )
            return
        if _is_file(directory / LOCK, descriptor):
            break
        os.close(descriptor)  # its holder has just ended, and removed it
    holder = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()})
    os.ftruncate(descriptor, 0)
    os.write(descriptor, holder.encode())
    _held[place] = descriptor


def release(directory: Path) -> None:
    """Give the lock back and remove its file; nothing where this process holds none."""
    descriptor = _held.pop(directory.resolve(), None)
    if descriptor is not None:
        with suppress(OSError):  # somebody has removed the directory
            (directory / LOCK).unlink()
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    """``process 17 on host x since 12:30:00``, as far as the file says it."""
    try:
        said = json.loads(os.read(descriptor, 4096))
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(said["since"]))
        return f"process {said['pid']} on host {said['host']} since {since}"
    except (OSError, ValueError, KeyError, TypeError):  # it has only just taken the lock
        return "another process"


def _is_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _close_inherited() -> None:
    """A fork shares its parent's locks: workers that outlive it for a moment would keep them."""
    while _held:
        os.close(_held.popitem()[1])


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)
