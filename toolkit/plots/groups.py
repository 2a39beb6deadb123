"""A value of several methods in several groups: by length, by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from toolkit.plots.fonts import width_in_ems
from toolkit.plots.labels import (
    LEADING,
    legend_below,
    longest_word_ems,
    name_columns,
    name_columns_upright,
    wrapped,
)
from toolkit.plots.style import POINTS, WIDTH, Formatter, arranged, format_ticks, look, style

_DOTS = 40  # side by side in a picture 400 pixels wide
_ROOM = 0.84 * POINTS  # points that axes are wide
_NAME_SIZE = 9
_BETWEEN = 2  # points between the names of neighbours
_LEVEL_EMS, _UPRIGHT_EMS = 7, 15  # widths of names beside each other, and of those read from below
_UPRIGHT_LINES = 2


@dataclass(frozen=True)
class GroupValues:
    """One method's value in every group, with the bounds of an interval; NaN where it has none."""

    name: str
    values: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


def grouped_bars(
    groups: Sequence[str],
    series: Sequence[GroupValues],
    formatter: Formatter,
    axis_name: str,
) -> Figure:
    """Values with their intervals in every group, the methods of a group beside each other.

    Dots rather than bars, so that the axis need not begin at 0. Groups that find no room in one
    row continue in a row below, on the same scale. No word of a group's name is broken: names with
    longer words are read from below.

    Args:
        formatter: writes a value at the axis.

    Raises:
        ValueError: no groups or methods; a method without one value per group.
    """
    if not groups or not series:
        raise ValueError("there are no groups or no methods to draw")
    for line in series:
        for values in (line.values, line.low, line.high):
            if values is not None and len(values) != len(groups):
                raise ValueError(f"{line.name}: {len(values)} values for {len(groups)} groups")
    upright = max(map(longest_word_ems, groups)) > _LEVEL_EMS
    rows = _rows(groups, len(series), upright)
    names = [_lines(group, len(rows[0]), upright) for group in groups]
    with style():
        panel_height = 1.5 if len(rows) > 1 else 2.1
        height = 0.2 + 0.22 * len(series) + len(rows) * (
            panel_height + _height_of_names(names, upright) / 72)  # fmt: skip
        figure = Figure(figsize=(WIDTH, height), dpi=72, layout="constrained")
        panels = figure.subplots(len(rows), 1, sharey=True, squeeze=False)[:, 0]
        for panel, row in zip(panels, rows, strict=True):
            handles = [
                _draw_method(panel, line, index, len(series), row)
                for index, line in enumerate(series)
            ]
            _separate(panel, len(rows[0]))
            write_names = name_columns_upright if upright else name_columns
            write_names(panel, [names[group] for group in row], _NAME_SIZE)
            panel.grid(visible=False, axis="x")
            panel.set_ylabel(axis_name)
        for panel in panels:
            format_ticks(panel.yaxis, formatter)
        legend_below(figure, handles, [line.name for line in series])
        return arranged(figure)


def _rows(groups: Sequence[str], methods: int, upright: bool) -> list[range]:
    """Groups that stand beside each other: as many as leave room for dots and longest words."""
    most = max(1, min(len(groups), _DOTS // (methods + 1)))
    if upright:
        needed = _UPRIGHT_LINES * LEADING * _NAME_SIZE
    else:
        lines = [line for group in groups for line in wrapped(group, _LEVEL_EMS)]
        needed = max(map(width_in_ems, lines)) * _NAME_SIZE
    most = max(1, min(most, int(_ROOM / (needed + _BETWEEN))))
    count = -(-len(groups) // most)
    each = -(-len(groups) // count)  # 5 + 4 rather than 6 + 3
    return [range(first, min(first + each, len(groups))) for first in range(0, len(groups), each)]


def _lines(group: str, beside: int, upright: bool) -> list[str]:
    if upright:
        return wrapped(group, _UPRIGHT_EMS, most=_UPRIGHT_LINES)
    return wrapped(group, (_ROOM / beside - _BETWEEN) / _NAME_SIZE, most=4)


def _height_of_names(names: Sequence[Sequence[str]], upright: bool) -> float:
    """The points that the highest name takes below the axes."""
    if upright:
        return _NAME_SIZE * max(width_in_ems(line) for lines in names for line in lines)
    return _NAME_SIZE * LEADING * max(map(len, names))


def _draw_method(axes: Axes, line: GroupValues, index: int, methods: int, row: range) -> Line2D:
    """Draw one method's dots and intervals; returns the dots, for the legend."""
    offset = ((index + 0.5) / methods - 0.5) * 0.76
    places = np.arange(len(row)) + offset
    appearance = look(index) | {"linestyle": ""}
    if line.low is not None and line.high is not None:
        low, high = (np.asarray(b, dtype=float)[list(row)] for b in (line.low, line.high))
        finite = np.isfinite(low) & np.isfinite(high)
        axes.vlines(places[finite], low[finite], high[finite],
                    colors=appearance["color"], linewidth=1.4)  # fmt: skip
    values = np.asarray(line.values, dtype=float)[list(row)]
    (dots,) = axes.plot(places, values, **appearance)
    return dots


def _separate(axes: Axes, groups: int) -> None:
    """A lighter and a darker ground in turn, so that it is seen which dots belong together."""
    axes.set_xlim(-0.5, groups - 0.5)
    for group in range(1, groups, 2):
        axes.axvspan(group - 0.5, group + 0.5, color="#F2F2F2", zorder=0, linewidth=0)
