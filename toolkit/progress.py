"""Live display of a run: bars on a terminal, plain lines everywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from toolkit.console import is_main_process, remarks

# Seconds between plain lines: often enough to see it lives, rare enough to read the log.
PLAIN_INTERVAL = 10.0


class Display(Protocol):
    """One thing that is counted up to a known total."""

    def advance(self, amount: int = 1, note: str = "") -> None:
        """Count on, and show a short note such as the current loss."""


class _Silent:
    def advance(self, amount: int = 1, note: str = "") -> None:
        pass


class _Bar:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress, self.task = progress, task

    def advance(self, amount: int = 1, note: str = "") -> None:
        self.progress.update(self.task, advance=amount, note=note)


class _Lines:
    def __init__(self, what: str, total: int, done: int) -> None:
        self.what, self.total, self.done, self.first = what, total, done, done
        self.started = self.printed = time.monotonic()

    def advance(self, amount: int = 1, note: str = "") -> None:
        self.done += amount
        now = time.monotonic()
        if self.done < self.total and now - self.printed < PLAIN_INTERVAL:
            return
        self.printed = now
        rate = (self.done - self.first) / max(now - self.started, 1e-9)
        left = _clock((self.total - self.done) / rate) if rate > 0 else "?"
        spent = _clock(now - self.started)
        line = f"{self.what} {self.done}/{self.total}  {note}  {spent} spent, {left} left"
        print(line, file=sys.stderr, flush=True)


@contextmanager
def progress_bar(what: str, total: int, done: int = 0) -> Iterator[Display]:
    """Show progress while the block runs.

    Args:
        what: name of the activity, e.g. ``training``.
        total: number to reach; ``done`` of them are there already (a resumed run).
    """
    if not is_main_process():
        yield _Silent()
    elif not remarks.is_terminal:
        yield _Lines(what, total, done)
    else:
        columns = (
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
        )
        # transient: a finished bar leaves the screen to the lines that report results.
        # The console of all remarks: what is said meanwhile appears above the bar, not in it.
        with Progress(*columns, console=remarks, transient=True) as progress:
            yield _Bar(progress, progress.add_task(what, total=total, completed=done, note=""))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal that something of unknown length goes on; nothing elsewhere."""
    if not is_main_process() or not remarks.is_terminal:
        yield
        return
    with remarks.status(f"{escape(what)} …"):
        yield
