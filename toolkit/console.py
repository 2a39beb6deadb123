"""Where everything a person reads is printed: results on stdout, remarks on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

console = Console(highlight=False)
remarks = Console(stderr=True, highlight=False)

_kept: list[str] | None = None  # where remarks go that are kept


def is_main_process() -> bool:
    """True in the process that speaks for a distributed run (rank 0, or the only one)."""
    return int(os.environ.get("RANK", "0")) == 0


def notify(message: str) -> None:
    """Print one remark on stderr, once per run rather than once per process."""
    if _kept is not None:
        _kept.append(message)
    elif is_main_process():
        remarks.print(escape(message), soft_wrap=True)


@contextmanager
def keep_remarks() -> Iterator[list[str]]:
    """What `notify` is told inside the block, in order, and not printed."""
    global _kept
    before, _kept = _kept, []
    try:
        yield _kept
    finally:
        _kept = before


def fail(message: str) -> None:
    """Print an error for the user on stderr (every process may: the launcher keeps them apart)."""
    label = "" if is_main_process() else f" (process {os.environ['RANK']})"
    remarks.print(f"[bold red]error[/bold red]{label}: {escape(message)}", soft_wrap=True)
    sys.stderr.flush()
