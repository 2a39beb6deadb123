"""What runs logged while they trained: curves against steps, seconds and joules."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.comparison.saved_run import SavedRun
from toolkit.errors import UserError

AXES = ("step", "seconds", "joules")


@dataclass(frozen=True)
class Point:
    """A logged value and where it was logged; what does not exist or was not readable is None."""

    step: int | None
    seconds: float | None
    joules: float | None
    value: float

    def at(self, axis: str) -> float | None:
        """Its place on an axis of `AXES`."""
        place: float | None = getattr(self, axis)
        return place


@dataclass(frozen=True)
class TrainingLog:
    """The training loss of one run, and its validation metrics by name; in order of the steps.

    Args:
        unreadable: lines of the file that are no JSON, the last one (cut short by a kill) apart.
    """

    loss: list[Point]
    validation: dict[str, list[Point]]
    unreadable: tuple[int, ...] = ()


def read_training_log(run: SavedRun) -> TrainingLog:
    """Read ``metrics.jsonl``; empty for a run that has none. A line cut short is left out.

    What a run logged before its first step is not training. One that takes no steps (logistic
    regression) has a single validation point: its best value, at the end of its training time.
    """
    loss: list[Point] = []
    validation: dict[str, list[Point]] = {}
    untrained: dict[str, list[float]] = {}
    unreadable: list[int] = []
    for event in _events(run.folder / "metrics.jsonl", unreadable):
        if "loss" in event:
            loss.append(_point(event, event["loss"]))
        for name, value in (event.get("validation") or {}).items():
            if event["step"] > 0:
                validation.setdefault(name, []).append(_point(event, value))
            elif (number := _number(value)) is not None:
                untrained.setdefault(name, []).append(number)
    training = run.section("training")
    seconds, joules = (_number(training.get(key)) for key in ("seconds", "energy_joules"))
    if not loss and not validation and seconds is not None:
        chosen = selection_metric([run])
        if chosen is not None and (values := untrained.get(chosen[0])):
            best = max(values) if chosen[1] else min(values)
            validation[chosen[0]] = [Point(None, seconds, joules, best)]
    return TrainingLog(loss, validation, tuple(unreadable))


def _events(path: Path, unreadable: list[int]) -> Iterator[dict[str, Any]]:
    """What was logged, line by line; the numbers of lines that are no JSON go to `unreadable`."""
    if not path.is_file():
        return
    last = -1
    # A byte that is not UTF-8 spoils its line only, which is then no JSON.
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            event = json.loads(line)
        except ValueError:
            if number < len(lines):
                unreadable.append(number)
            continue
        if isinstance(event, dict) and isinstance(event.get("step"), int):
            if event["step"] < last:
                raise UserError(
                    f"{path}: step {event['step']} stands behind step {last}. The file was put "
                    "together of two runs, or edited: leave the run out, or run it again."
                )
            last = event["step"]
            yield event


def _number(value: Any) -> float | None:
    """None for what is no finite number."""
    found = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if found and math.isfinite(value) else None


def _point(event: dict[str, Any], value: Any) -> Point:
    number = _number(value)
    return Point(
        step=event["step"],
        seconds=_number(event.get("seconds")),
        joules=_number(event.get("joules")),
        value=math.nan if number is None else number,
    )


def selection_metric(runs: Sequence[SavedRun]) -> tuple[str, bool] | None:
    """Name of the validation metric that all trained runs chose by, and whether higher is better.

    None where they chose by different ones, or by none.
    """
    rules = {str(run.section("training").get("selection") or "") for run in runs}
    rules = {rule for rule in rules if rule.split(" ")[:1] in (["highest"], ["lowest"])}
    if len(rules) != 1:
        return None
    direction, _, metric = rules.pop().partition(" validation ")
    return (metric, direction == "highest") if metric else None
