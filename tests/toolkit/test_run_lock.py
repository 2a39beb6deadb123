"""A run directory is written by one process, and is free again whatever ends it."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import UserError
from toolkit.run_lock import LOCK, hold, release

HOLD = """
import os, sys, time
from pathlib import Path
from toolkit.run_lock import hold
hold(Path(sys.argv[1]))
worker = os.fork() if sys.argv[2] == "with a worker" else None
if worker != 0:
    print(worker, flush=True)
time.sleep(60)
"""
Start = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def start_holder(repository: Path) -> Iterator[Start]:
    """Start a process that holds the lock of a folder; gives it, and what it says."""
    started = []

    def start(folder: Path, kind: str = "alone") -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder), kind], cwd=repository,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline()

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_second_process_is_refused_by_name_until_the_first_is_killed(
    start_holder: Start, tmp_path: Path
) -> None:
    holder, _ = start_holder(tmp_path)
    for _ in range(2):  # the refusal takes nothing away
        with pytest.raises(UserError) as refused:
            hold(tmp_path)
        assert f"process {holder.pid} on host {socket.gethostname()} since" in str(refused.value)
    holder.kill()  # SIGKILL: it cleans nothing up
    holder.wait()
    assert (tmp_path / LOCK).exists()
    hold(tmp_path)
    release(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_outlives_the_run_holds_nothing(start_holder: Start, tmp_path: Path) -> None:
    holder, said = start_holder(tmp_path, "with a worker")
    worker = int(said)
    try:
        holder.kill()
        holder.wait()
        os.kill(worker, 0)  # it is there
        deadline = time.monotonic() + 20
        while True:  # it may not have come to giving back what it has inherited
            try:
                hold(tmp_path)
                break
            except UserError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        release(tmp_path)
    finally:
        os.kill(worker, signal.SIGKILL)


def test_the_same_process_takes_its_own_lock_again(start_holder: Start, tmp_path: Path) -> None:
    """As when a run fails and is resumed by the program that started it."""
    hold(tmp_path)
    hold(tmp_path)
    release(tmp_path)
    release(tmp_path)
    start_holder(tmp_path)  # it would end with an error, and say nothing
    with pytest.raises(UserError, match="is being written by process"):
        hold(tmp_path)


def test_a_lock_that_its_holder_has_just_removed_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the file and locking it: a third one would find another file there."""
    locked, flock = [], fcntl.flock

    def late(descriptor: int, operation: int) -> None:
        if not locked:
            (tmp_path / LOCK).unlink()
        locked.append(os.fstat(descriptor).st_ino)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    hold(tmp_path)
    assert len(locked) == 2
    assert (tmp_path / LOCK).stat().st_ino == locked[1]
    release(tmp_path)


def test_a_holder_that_has_not_yet_said_who_it_is(start_holder: Start, tmp_path: Path) -> None:
    start_holder(tmp_path)
    (tmp_path / LOCK).write_text("")
    with pytest.raises(UserError, match="is being written by another process"):
        hold(tmp_path)


def test_a_file_system_without_locks_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def flock(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    hold(tmp_path)
    assert "cannot be locked (No locks available)" in capsys.readouterr().err
    release(tmp_path)


def test_a_directory_that_cannot_be_written_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written: No such file or directory"):
        hold(tmp_path / "missing")
