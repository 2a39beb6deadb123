"""Verdicts of claims that say several things: each is decided for itself, then all together."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from toolkit.claims.claim import Verdict


class Point(Enum):
    """What was found for one thing that a claim says."""

    FOR = "yes"
    AGAINST = "no"
    OPEN = "cannot be told"


def above(low: float, high: float, bound: float = 0.0) -> Point:
    """Whether a number lies above a bound, by its interval: FOR where all of it does."""
    if low > bound:
        return Point.FOR
    return Point.AGAINST if high <= bound else Point.OPEN


def verdict_of(points: Sequence[Point]) -> Verdict:
    """HOLDS where everything was found, PARTLY where something, FAILS where all speaks against."""
    if all(point is Point.FOR for point in points):
        return Verdict.HOLDS
    if any(point is Point.FOR for point in points):
        return Verdict.PARTLY
    if all(point is Point.AGAINST for point in points):
        return Verdict.FAILS
    return Verdict.UNDECIDED
