"""Fewer points for the same picture of a long curve."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_MOST_COLUMNS = 400  # of a picture 400 pixels wide
_COLUMNS_OF_ALL_LINES = 900  # keeps an SVG below 150 kB: 8 points a column, 14 bytes a point


def columns_for(lines: int) -> int:
    """Columns in which each of so many lines of a picture is thinned."""
    return min(_MOST_COLUMNS, _COLUMNS_OF_ALL_LINES // lines)


def is_drawn_whole(points: int, columns: int) -> bool:
    """Whether a line has so few points that thinning would spare nothing."""
    return points <= 4 * columns


def thinned(
    places: NDArray[np.float64], values: NDArray[np.float64], columns: int
) -> NDArray[np.intp]:
    """Indices of the points that draw the same line in a picture so many columns wide.

    Of every column its first, last, lowest and highest point, and the edges of its first gap.
    For a line without gaps no pixel changes where a column is a pixel wide (Jugel et al. 2014,
    "M4: A Visualization-Oriented Time Series Data Aggregation").

    Args:
        places: x as it is drawn (its logarithm on a log axis), shape (points,), not falling.
        values: y, shape (points,); what is not finite is a gap.
        columns: how many.
    """
    kept: list[int] = []
    for start, stop in column_bounds(places, columns):
        kept += _first_gap(values, start, stop)
        finite = start + np.flatnonzero(np.isfinite(values[start:stop]))
        if len(finite):
            lowest, highest = finite[values[finite].argmin()], finite[values[finite].argmax()]
            kept += [int(finite[0]), int(finite[-1]), int(lowest), int(highest)]
    return np.unique(np.array(kept, dtype=np.intp))


def thinned_band(
    places: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    columns: int,
) -> NDArray[np.intp]:
    """The same for a band: of every column where it reaches lowest and highest, and its ends."""
    kept: list[int] = []
    whole = np.where(np.isfinite(low) & np.isfinite(high), 0.0, np.nan)
    for start, stop in column_bounds(places, columns):
        kept += _first_gap(whole, start, stop)
        finite = start + np.flatnonzero(np.isfinite(whole[start:stop]))
        if len(finite):
            kept += [int(finite[low[finite].argmin()]), int(finite[high[finite].argmax()])]
    finite = np.flatnonzero(np.isfinite(whole))
    return np.unique(np.array([*kept, *finite[:1], *finite[-1:]], dtype=np.intp))


def column_bounds(places: NDArray[np.float64], columns: int) -> list[tuple[int, int]]:
    """Ranges of indices that fall into the same column, without empty ones."""
    edges = np.linspace(places[0], places[-1], columns + 1)[1:-1]
    bounds = np.unique([0, *np.searchsorted(places, edges), len(places)])
    return [(int(a), int(b)) for a, b in pairwise(bounds)]


def _first_gap(values: NDArray[np.float64], start: int, stop: int) -> list[int]:
    """The first place of the column that is a gap, with the points on either side of it."""
    gaps = start + np.flatnonzero(~np.isfinite(values[start:stop]))
    if not len(gaps):
        return []
    after = int(gaps[0])
    while after < len(values) and not np.isfinite(values[after]):
        after += 1
    sides = (int(gaps[0]) - 1, int(gaps[0]), after)
    return [place for place in sides if 0 <= place < len(values)]
