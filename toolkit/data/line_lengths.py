"""Lengths of texts and of their translations: where two files part, and which pairs look wrong.

A translation is about as long as its source times a ratio of the languages. (Gale and Church 1993
align sentences by nothing else.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_SMOOTHING = 3.0  # characters added to both sides, so that short texts may differ by a few
_MOST_CELLS = 100_000_000  # lines times missing lines: beyond, the search takes too long
_LEAST_GAIN = 0.5  # over skipping all at one end: below it lengths say nothing about the place
_LEAST_FACTOR = 3.0  # pairs whose ratio differs less from the usual one are never unusual
_DEVIATIONS = 4.0  # of the usual spread

_Floats = npt.NDArray[np.float64]


def first_unmatched(longer: Sequence[int], shorter: Sequence[int]) -> int | None:
    """The first line (0-based) of the longer file that has no counterpart in the shorter one.

    Of all ways to leave out as many lines as are too many, the one under which the lengths of the
    others fit best. None where the lengths do not tell.

    Args:
        longer, shorter: characters of every line; `longer` has more lines.
    """
    a, b = np.asarray(longer, dtype=float), np.asarray(shorter, dtype=float)
    lines, missing = len(b), len(a) - len(b)
    if not lines or missing * len(a) > _MOST_CELLS or not a.sum() or not b.sum():
        return None
    ratio = b.sum() / a.sum()

    def summed(left_out: int) -> _Floats:
        """Costs of the first 0, 1, ... lines of b beside those of a that many lines further on."""
        costs = np.abs(_log_ratios(a[left_out : left_out + lines], b, ratio))
        return np.concatenate([[0.0], np.cumsum(costs)])

    # best[i]: least cost of the first i lines of b where `left_out` lines of a were skipped by
    # then; first[i]: which of them was the first.
    best, first = summed(0), np.zeros(lines + 1, dtype=np.int64)
    worst_guess = max(best[-1], summed(missing)[-1])
    for left_out in range(1, missing + 1):
        sums = summed(left_out)
        skipped_at = best - sums  # the line was skipped after so many lines of b
        places = _running_argmin(skipped_at)
        best = sums + skipped_at[places]
        first = places if left_out == 1 else first[places]
    if worst_guess - best[-1] < _LEAST_GAIN:
        return None
    return int(first[-1])


def unusual_pairs(sources: Sequence[int], targets: Sequence[int]) -> list[int]:
    """Pairs (0-based) whose lengths fit each other far worse than those of the others.

    By a factor of three at least, and four times the usual spread (median absolute deviation).

    Args:
        sources, targets: characters of both texts of every pair.
    """
    a, b = np.asarray(sources, dtype=float), np.asarray(targets, dtype=float)
    if not len(a) or not a.sum() or not b.sum():
        return []
    ratios = _log_ratios(a, b, b.sum() / a.sum())
    off = np.abs(ratios - np.median(ratios))
    spread = 1.4826 * np.median(off)  # of a normal distribution its standard deviation
    limit = max(np.log(_LEAST_FACTOR), _DEVIATIONS * spread)
    return [int(row) for row in np.flatnonzero(off > limit)]


def _log_ratios(sources: _Floats, targets: _Floats, ratio: float) -> _Floats:
    return np.log((targets + _SMOOTHING) / (sources * ratio + _SMOOTHING))


def _running_argmin(values: _Floats) -> npt.NDArray[np.int64]:
    """For every prefix the place of its least value."""
    least = np.minimum.accumulate(values)
    is_new = np.concatenate([[True], values[1:] < least[:-1]])
    return np.maximum.accumulate(np.where(is_new, np.arange(len(values)), 0))
