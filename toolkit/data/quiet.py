"""The `datasets` library without its progress bars."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import datasets


@contextmanager
def quiet_datasets() -> Iterator[None]:
    """No progress bars of `datasets` where nobody watches them (a log file, a test)."""
    silence = not sys.stderr.isatty() and datasets.are_progress_bars_disabled() is False
    if silence:
        datasets.disable_progress_bars()
    try:
        yield
    finally:
        if silence:
            datasets.enable_progress_bars()
