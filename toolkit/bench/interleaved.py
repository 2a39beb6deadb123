"""Time programs in turn, so that whatever else the machine does falls on all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Spread:
    """Median and range of one number over the rounds."""

    median: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Of at least one value."""
        return cls(statistics.median(values), min(values), max(values))


def run_once(contenders: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """What each contender computes; the first run, which warms it up, is not timed."""
    return {name: contender() for name, contender in contenders.items()}


def time_in_turn(
    contenders: Mapping[str, Callable[[], Any]],
    rounds: int,
    advance: Callable[[int], None] = lambda _: None,
) -> dict[str, list[float]]:
    """Seconds of every contender in every round; the order is reversed from round to round.

    Args:
        contenders: warmed up.
        advance: called after every run.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        names = list(contenders)
        for name in names if number % 2 == 0 else reversed(names):
            started = time.perf_counter()
            contenders[name]()
            seconds[name].append(time.perf_counter() - started)
            advance(1)
    return seconds


def ratios(seconds: Mapping[str, list[float]], ours: str) -> dict[str, Spread]:
    """How many times as fast ours is as each of the others, round by round."""
    return {
        name: Spread.of([theirs / own for theirs, own in zip(times, seconds[ours], strict=True)])
        for name, times in seconds.items()
        if name != ours
    }
