"""Curves of several runs, averaged where their places differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AveragedCurve:
    """Mean, lowest and highest of several runs at the places they share; all shapes (places,)."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats
    runs: int


def average_over_seeds(curves: Sequence[tuple[ArrayLike, ArrayLike]]) -> AveragedCurve:
    """Average curves that were measured at different places, such as seconds since the start.

    Every curve is read off, by straight lines between its points, at every place of any of them
    within the range that all cover; nothing is continued beyond a run's first or last point. There
    may be no such range: then the arrays are empty. Where one run has no finite value, and up to
    its next finite ones, there is none for the average: the mean of the runs that did not diverge
    would flatter the method.

    Args:
        curves: x and y of every run, equally long; x does not fall (of several values at one x
            the last counts).

    Raises:
        ValueError: no curves, x and y of different lengths, x that falls or is not finite.
    """
    if not curves:
        raise ValueError("there are no curves to average")
    read = [_read(place, *curve) for place, curve in enumerate(curves)]
    first = max((x[0] if len(x) else np.inf) for x, _ in read)
    last = min((x[-1] if len(x) else -np.inf) for x, _ in read)
    places = np.unique(np.concatenate([x for x, _ in read]))
    places = places[(places >= first) & (places <= last)]
    values = np.stack([np.interp(places, x, y) if len(places) else places for x, y in read])
    return AveragedCurve(
        x=places,
        mean=values.mean(axis=0),
        low=values.min(axis=0),
        high=values.max(axis=0),
        runs=len(read),
    )


def average_point_by_point(curves: Sequence[tuple[ArrayLike, ArrayLike]]) -> AveragedCurve:
    """Average the first points of all curves, the second ones, and so on: places and values.

    For curves whose n-th points belong together though their places differ, such as the seconds at
    which evaluations were made: no value is read off between points. Points that not every curve
    has are left out; a value that is not finite makes its average a gap.

    Raises:
        ValueError: no curves, or x and y of different lengths.
    """
    if not curves:
        raise ValueError("there are no curves to average")
    arrays = [(np.asarray(x, dtype=float), np.asarray(y, dtype=float)) for x, y in curves]
    for number, (x, y) in enumerate(arrays):
        if x.ndim != 1 or x.shape != y.shape:
            raise ValueError(f"curve {number}: x has shape {x.shape}, y {y.shape}")
    points = min(len(x) for x, _ in arrays)
    places = np.stack([x[:points] for x, _ in arrays])
    values = np.stack([y[:points] for _, y in arrays])
    values = np.where(np.isfinite(values), values, np.nan)
    return AveragedCurve(
        x=places.mean(axis=0),
        mean=values.mean(axis=0),
        low=values.min(axis=0),
        high=values.max(axis=0),
        runs=len(arrays),
    )


def _read(number: int, x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """A curve as arrays, one value a place, gaps as NaN (which `numpy.interp` does not bridge)."""
    places, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if places.ndim != 1 or places.shape != values.shape:
        raise ValueError(f"curve {number}: x has shape {places.shape}, y {values.shape}")
    if not np.isfinite(places).all() or (np.diff(places) < 0).any():
        raise ValueError(f"curve {number}: x must be finite and not fall")
    last_at_place = np.append(np.diff(places) > 0, True)[: len(places)]
    values = np.where(np.isfinite(values), values, np.nan)
    return places[last_at_place], values[last_at_place]
