"""How long every run took to reach an accuracy on the validation data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.compare import Comparison
from toolkit.report import wording
from toolkit.run_results import SavedRun


@dataclass(frozen=True)
class TimeToAccuracy:
    """Training seconds by level of accuracy that at least one run reached, rising.

    `seconds[level]` has one entry per run, in the order of the table: None where the run did not
    reach the level. `left_out` says why there are none although runs recorded some.
    """

    seconds: dict[float, list[float | None]]
    left_out: str | None = None


def time_to_accuracy(comparison: Comparison) -> TimeToAccuracy | None:
    """Read what the runs recorded (`seconds_to_accuracy`); None where no run did.

    Seconds on different machines, or up to an accuracy on different examples, are not shown side by
    side.
    """
    runs = [row.run for row in comparison.rows]
    recorded = [run.section("training").get("seconds_to_accuracy") or {} for run in runs]
    if not any(recorded):
        return None
    if not comparison.same_speed_conditions:
        return TimeToAccuracy({}, _why_not("on different hardware, precision or numbers of "
                                           "threads or processes"))  # fmt: skip
    if not _same_validation(runs):
        return TimeToAccuracy({}, _why_not("with different validation examples"))
    levels = sorted({float(level) for times in recorded for level in times})
    found = {level: [_seconds_at(times, level) for times in recorded] for level in levels}
    reached = {level: times for level, times in found.items() if set(times) != {None}}
    if not reached:
        lowest = wording.level(levels[0])
        return TimeToAccuracy({}, f"No run reached an accuracy of {lowest} on validation.")
    return TimeToAccuracy(reached)


def _why_not(difference: str) -> str:
    return (
        f"The runs were trained {difference}: how long each took to reach an accuracy cannot be "
        "compared."
    )


def _same_validation(runs: Sequence[SavedRun]) -> bool:
    return len({run.data_hash("validation") for run in runs}) == 1


def _seconds_at(times: dict[str, float | None], level: float) -> float | None:
    return next((seconds for name, seconds in times.items() if float(name) == level), None)
