"""How long every method took to reach a value on the validation data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.comparison.compare import Comparison
from toolkit.comparison.saved_run import SavedRun
from toolkit.comparison.training_log import AXES, Point, TrainingLog, selection_metric
from toolkit.errors import UserError

_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)
_SHARES = (
    "accuracy", "f1", "macro_f1", "entity_f1", "exact_match", "masked_accuracy", "token_accuracy",
    "next_sentence_accuracy",
)  # fmt: skip
_MOST_LEVELS = 4
_PER_TOKEN = (
    "The runs cut their texts into different tokens, and what they logged on validation is per "
    "token: how long each took to reach a value cannot be compared, nor can the curves."
)


@dataclass(frozen=True)
class Reached:
    """Where the seeds of a method first reached a target, one entry per seed; None: it did not."""

    points: list[Point | None]

    def along(self, axis: str) -> list[float] | None:
        """Places on an axis of `AXES`; None unless every seed reached the target and has one."""
        places = [None if point is None else point.at(axis) for point in self.points]
        known = [place for place in places if place is not None]
        return known if known and len(known) == len(places) else None


@dataclass(frozen=True)
class Targets:
    """Where every method reached values of a validation metric.

    `reached[target]` has one entry per row of the table, None for a method that logged nothing.
    `common` is the best value that all of them reached, None where a target was asked for.
    `left_out` says why there are none although runs logged some.
    """

    metric: str
    reached: dict[float, list[Reached | None]]
    common: float | None = None
    left_out: str | None = None

    def axes(self) -> list[str]:
        """The axes on which any method has a place."""
        found = [one for row in self.reached.values() for one in row if one is not None]
        return [axis for axis in AXES if any(one.along(axis) for one in found)]


def targets(comparison: Comparison) -> Targets | None:
    """What the runs logged on validation; None where none logged it or they chose differently.

    The targets are the one asked for, or else the best value that every trained run reached and,
    for shares, the round values that some method reached.
    """
    chosen = selection_metric(comparison.runs)
    if chosen is None:
        return None
    metric, higher = chosen
    curves = [_curves(logs, metric) for logs in comparison.logs]
    if sum(curve is not None for curve in curves) < 2:
        return None
    trained = [run for row, c in zip(comparison.rows, curves, strict=True) if c
               for run in row.method.runs]  # fmt: skip
    if not _same_validation(trained):
        why = _why_not("with different validation examples")
        return Targets(metric, {}, left_out=why)
    if comparison.target is not None and not math.isfinite(comparison.target):
        raise UserError(f"--target {comparison.target}: expected a number.")
    if comparison.target is not None and is_share(metric) and not 0 <= comparison.target <= 1:
        raise UserError(
            f"--target {comparison.target:g}: validation {metric.replace('_', ' ')} runs from 0 to "
            "1; give a share such as 0.8."
        )
    if not comparison.same_tokens:
        return Targets(metric, {}, left_out=_PER_TOKEN)
    sign = 1 if higher else -1
    best = [max(sign * p.value for p in run) for c in curves if c for run in c]
    common = None if comparison.target is not None else sign * min(best)
    wanted = [comparison.target] if common is None else _usual_targets(common, best, metric, sign)
    reached = {
        target: [None if c is None else _reached(c, target, sign) for c in curves]
        for target in wanted
        if target is not None
    }
    return Targets(metric, reached, common)


def is_share(metric: str) -> bool:
    """Whether a validation metric runs from 0 to 1 and is read in percent."""
    return metric in _SHARES


def _curves(logs: Sequence[TrainingLog], metric: str) -> list[list[Point]] | None:
    found = [log.validation.get(metric, []) for log in logs]
    finite = [[point for point in points if point.value == point.value] for points in found]
    return finite if all(finite) else None


def _usual_targets(common: float, best: Sequence[float], metric: str, sign: int) -> list[float]:
    """The value that all reached; of a share the highest round levels that any did, too.

    `best` are the runs' best values times `sign`.
    """
    wanted = {common}
    if is_share(metric):
        levels = [level for level in _LEVELS if level <= max(best)]
        wanted |= set(levels[-(_MOST_LEVELS - 1) :])
    return sorted(wanted, key=lambda value: sign * value)


def _reached(curves: Sequence[Sequence[Point]], target: float, sign: int) -> Reached:
    return Reached(
        [next((p for p in curve if sign * (p.value - target) >= 0), None) for curve in curves]
    )


def _same_validation(runs: Sequence[SavedRun]) -> bool:
    return len({run.data_hash("validation") for run in runs}) == 1


def _why_not(difference: str) -> str:
    return (
        f"The runs were trained {difference}: how long each took to reach a value cannot be "
        "compared."
    )
