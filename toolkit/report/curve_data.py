"""The curves of training that a report draws, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.comparison.compare import Comparison
from toolkit.comparison.targets import is_share
from toolkit.comparison.training_log import AXES, Point, selection_metric
from toolkit.curves import average_over_seeds, average_point_by_point
from toolkit.plots import Band
from toolkit.plots.thinning import columns_for, is_drawn_whole, thinned, thinned_band
from toolkit.report import wording


@dataclass(frozen=True)
class CurvePicture:
    """One picture: a value in the course of training, a band for every method that logged it.

    Args:
        file: name of the picture, without suffix.
        axis: of `toolkit.comparison.training_log.AXES`.
        value: what is drawn, such as "validation accuracy".
        bands: mean, lowest and highest seed.
        share: the value runs from 0 to 1.
        target: a value to reach, where one was asked for.
    """

    file: str
    axis: str
    value: str
    bands: list[Band]
    share: bool
    target: float | None


def curve_pictures(comparison: Comparison) -> list[CurvePicture]:
    """Training loss, then the validation metric that chose the models, against every axis.

    Seconds and joules of different machines are left out, and all curves where the runs cut their
    texts into different tokens; so are pictures on which no line has two points.
    """
    if not comparison.same_tokens:
        return []
    loss = [[log.loss for log in logs] for logs in comparison.logs]
    axes = [axis for axis in AXES if axis == "step" or comparison.same_machine]
    found = [
        CurvePicture(f"training_loss_{axis}", axis, "training loss",
                     _bands(comparison, loss, axis), share=False, target=None)
        for axis in axes
    ]  # fmt: skip
    if (chosen := selection_metric(comparison.runs)) is not None:
        metric, _ = chosen
        logged = [[log.validation.get(metric, []) for log in logs] for logs in comparison.logs]
        name = f"validation {wording.metric(metric)}"
        found += [
            CurvePicture(f"validation_{axis}", axis, name, _bands(comparison, logged, axis),
                         share=is_share(metric), target=comparison.target)
            for axis in axes
        ]  # fmt: skip
    return [picture for picture in found if any(len(band.x) > 1 for band in picture.bands)]


def shown_points(band: Band, lines: int) -> NDArray[np.intp]:
    """Indices of the points that a picture of so many lines draws, of the mean or of the band."""
    x, mean, low, high = (
        np.asarray(values, dtype=float) for values in (band.x, band.mean, band.low, band.high)
    )
    columns = columns_for(lines)
    if is_drawn_whole(len(x), columns):
        return np.arange(len(x))
    return np.union1d(thinned(x, mean, columns), thinned_band(x, low, high, columns))


def _bands(
    comparison: Comparison, logs: Sequence[Sequence[Sequence[Point]]], axis: str
) -> list[Band]:
    """A line of every method whose runs all logged something on the axis."""
    bands = []
    for number, (row, runs) in enumerate(zip(comparison.rows, logs, strict=True)):
        curves = [
            ([place for p in run if (place := p.at(axis)) is not None],
             [p.value for p in run if p.at(axis) is not None])
            for run in runs
        ]  # fmt: skip
        if all(x for x, _ in curves):
            # Steps are the same for all seeds; at the same second each stands elsewhere.
            average = average_over_seeds if axis == "step" else average_point_by_point
            found = average(curves)
            if len(found.x):
                shape = (found.x, found.mean, found.low, found.high, found.runs)
                bands.append(Band(row.title, *shape, number=number))
    return bands
