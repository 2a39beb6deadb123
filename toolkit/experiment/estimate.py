"""How long the runs that are left will take, judged by those that are done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from toolkit.experiment.cells import CellRun


class Estimates:
    """Wall times of finished runs, and what they say about others."""

    def __init__(self) -> None:
        self._seconds: dict[object, list[float]] = defaultdict(list)

    def add(self, run: CellRun, seconds: float) -> None:
        """Learn from a run that was done in one piece."""
        for key in _kinds(run):
            self._seconds[key].append(seconds)

    def of(self, run: CellRun) -> float | None:
        """Seconds: the mean of the same cell, else of the same recipe, else of all runs.

        None where no run is known.
        """
        known = (self._seconds[key] for key in _kinds(run) if key in self._seconds)
        seconds = next(known, None)
        return None if seconds is None else fmean(seconds)

    def left(self, runs: Iterable[CellRun]) -> float | None:
        """Seconds of several runs together; None where nothing is known about them."""
        estimates = [self.of(run) for run in runs]
        known = [seconds for seconds in estimates if seconds is not None]
        return sum(known) if known else None


def _kinds(run: CellRun) -> tuple[object, ...]:
    """What runs may have in common, the closest first."""
    return (run.recipe, run.settings_of_cell), run.recipe, "all"


def in_words(seconds: float) -> str:
    """``50 s``, ``4 min 10 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s".removesuffix(" 0 s")
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min".removesuffix(" 0 min")


def roughly(seconds: float) -> str:
    """An estimate, without the precision it does not have: ``about 40 s``, ``about 7 min``."""
    if seconds < 10:
        return "a few seconds"
    step = 10 if seconds < 115 else 60
    return f"about {in_words(max(step * round(seconds / step), step))}"
