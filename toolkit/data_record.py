"""What data a run began with, so that it does not go on with others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolkit.errors import UserError
from toolkit.json_values import read_object_if_there

DATA = "data.json"
TRAINING_ROWS = "training_rows"
"""Rows (or windows, or blocks) of training in data.json, until the run is complete."""


def check_same_data(run: Path, data: dict[str, Any]) -> None:
    """Compare the data read now with those that a run, which is to be resumed, began with.

    Args:
        data: what data.json records; ``source`` and ``sha256`` by split among it.

    Raises:
        UserError: the rows of a split are others. A run that recorded none (an older one) is let
            through.
    """
    recorded = read_object_if_there(run / DATA)
    then, now = recorded.get("sha256", {}), data["sha256"]
    if not then:
        return
    changed = [split for split in {**then, **now} if then.get(split) != now.get(split)]
    if changed:
        sizes = [_sizes(record, changed) for record in (recorded, data)]
        counts = f" ({sizes[0]} then, {sizes[1]} now)" if sizes[0] != sizes[1] else ""
        raise UserError(
            f"--resume {run}: the data have changed since this run began: the rows of "
            f"{_listed(changed)} are others{counts}. Going on would mix two data sets. Put "
            f"{data['source']} back as it was, or start a new run."
        )


def check_same_rows(run: Path, rows: int | None) -> None:
    """Likewise for what was made of the data: as many rows to train on as then.

    Raises:
        UserError: there are more or fewer.
    """
    then = read_object_if_there(run / DATA).get(TRAINING_ROWS)
    if None not in (then, rows) and then != rows:
        raise UserError(
            f"--resume {run}: it began with {then:,} rows to train on, now the same data give "
            f"{rows:,}: the tokenizer is another, or the code. Put it back as it was, or start a "
            "new run."
        )


def _sizes(record: dict[str, Any], splits: list[str]) -> str:
    return _listed([f"{record.get('sizes', {}).get(split, 0):,}" for split in splits])


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
