"""What image runs report besides accuracy: how long it took to reach one, speed and memory."""

from __future__ import annotations

import json
from typing import Any

from rich.table import Table

from toolkit.console import console, is_main_process
from toolkit.outcome import describe_training
from toolkit.run import METRICS, Run
from toolkit.training.engine import FitResult

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99)


def describe_image_training(run: Run[Any], result: FitResult) -> dict[str, Any]:
    """The ``training`` section of a summary, with ``seconds_to_accuracy`` from the log."""
    lines = (run.directory / METRICS).read_text(encoding="utf-8").splitlines()
    seconds = seconds_to_accuracy([json.loads(line) for line in lines])
    return {**describe_training(run, result), "seconds_to_accuracy": seconds}


def seconds_to_accuracy(events: list[dict[str, Any]]) -> dict[str, float | None]:
    """Training seconds until an evaluation first reached each of `LEVELS`; None: never.

    Args:
        events: lines of metrics.jsonl; those of evaluations have ``seconds`` and ``validation``.
    """
    evaluated = [
        (event["validation"]["accuracy"], event["seconds"])
        for event in events
        if "validation" in event and "seconds" in event
    ]
    return {
        f"{level:g}": next((seconds for value, seconds in evaluated if value >= level), None)
        for level in LEVELS
    }


def print_cost(summary: dict[str, Any]) -> None:
    """Show speed, memory, size and the time to accuracy of a finished run."""
    if not is_main_process():
        return
    training, model = summary["training"], summary["model"]
    table = Table(title="cost", title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("value", justify="right")
    trained, total = model["parameters_trained"], model["parameters_total"]
    part = "" if trained == total else f", {trained:,} trained"
    table.add_row("parameters", f"{total:,}{part}")
    table.add_row("training", f"{training['seconds']:,.1f} s, {training['steps']:,} steps")
    table.add_row("images per second", f"{training['examples_per_second']:,.0f}")
    table.add_row("peak memory", f"{training['peak_memory_bytes'] / 2**20:,.0f} MiB")
    for level, seconds in (training.get("seconds_to_accuracy") or {}).items():
        if seconds is not None:
            table.add_row(f"to {float(level):.0%} on validation", f"{seconds:,.1f} s")
    console.print(table)
