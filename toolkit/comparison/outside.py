"""Predictions of somebody else's system as a run without a directory."""

from __future__ import annotations

from pathlib import Path

from toolkit.comparison.saved_run import SavedRun
from toolkit.task_scores.outside import read_outside


def load_outside(path: Path, title: str, like: SavedRun) -> SavedRun:
    """Read a file of predictions to the examples of a run, whose truth it is compared with.

    Raises:
        UserError: names the file and row that is wrong, and examples that are missing or too many.
    """
    predictions, summary = read_outside(path, like, title)
    return SavedRun(Path(path), summary, predictions, {})
