"""Values of several methods, and differences between them, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from toolkit.plots.fonts import width_in_ems
from toolkit.plots.labels import LEADING, legend_below, name_rows, wrapped
from toolkit.plots.style import (
    COLOURS,
    GREY,
    POINTS,
    Formatter,
    arranged,
    format_ticks,
    new_figure,
    percent,
    style,
)

_SIZE = 10.0  # of text, in points
_EMS = POINTS / _SIZE  # that a picture is wide
_NAME_EMS = 14.5
_LEAST_ROW, _LEAST_SEEDED_ROW, _BETWEEN = 18.0, 26.0, 8.0  # heights in points
_ABOVE, _BELOW = -5.0, 8.0  # points from the middle of a row to its value and to its seeds
_INTERVAL = "95% interval"
_SEEDS = COLOURS[1]
_SEED_DOT: dict[str, Any] = {
    "linestyle": "",
    "marker": "o",
    "markersize": 4,
    "markerfacecolor": "white",
    "markeredgewidth": 1.0,
}


@dataclass(frozen=True)
class Bar:
    """A named value with the bounds of its interval, one row of a plot.

    `seeds` are the values of single runs; `seed_low` and `seed_high` an interval over them. A bound
    that is not finite is not drawn.
    """

    name: str
    value: float
    low: float
    high: float
    seeds: Sequence[float] = ()
    seed_low: float | None = None
    seed_high: float | None = None

    @property
    def seed_bounds(self) -> tuple[float, float] | None:
        """The interval over seeds, where there is one."""
        if self.seed_low is None or self.seed_high is None:
            return None
        return self.seed_low, self.seed_high


def forest_plot(
    bars: Sequence[Bar],
    axis_name: str = "test accuracy",
    formatter: Formatter = percent,
    *,
    interval_name: str | None = None,
    seed_interval_name: str = "95% interval over seeds",
) -> Figure:
    """Values with their intervals, one row each, the first on top.

    Below a value, thinner: the interval over its seeds and a dot for each of them, where given; a
    legend then says what is what.

    Args:
        formatter: writes a value, by default a share in percent: 0.8432 -> "84.3%".
        interval_name: by default "95% interval", in the legend "... over test examples".

    Raises:
        ValueError: no bars.
    """
    rows = _Rows(bars, formatter, f"{axis_name}, {interval_name or _INTERVAL}")
    with style():
        figure, axes = rows.draw(room_above=0, room_below=_legend_height(bars))
        format_ticks(axes.xaxis, formatter)
        _legend(figure, bars, interval_name, seed_interval_name)
        return arranged(figure)


def difference_plot(
    bars: Sequence[Bar],
    axis_name: str,
    formatter: Formatter,
    *,
    left: str = "second better",
    right: str = "first better",
    interval_name: str | None = None,
    seed_interval_name: str = "95% interval over seeds",
) -> Figure:
    """Differences with their intervals, one row each, and a line where there is no difference.

    The zero is in the middle: an interval that crosses the line leaves open who is better, and
    distances to either side can be compared. Where less is better, exchange the two sides.

    Args:
        formatter: writes a difference, with its sign.
        left: what a negative difference means, in words, such as "TF-IDF better".
        right: what a positive one means.
        interval_name: as in `forest_plot`.

    Raises:
        ValueError: no bars.
    """
    rows = _Rows(bars, formatter, f"{axis_name}, {interval_name or _INTERVAL}")
    sides = rows.sides(left, right)
    above = LEADING * _SIZE * max(map(len, sides)) + 6
    with style():
        figure, axes = rows.draw(room_above=above, room_below=_legend_height(bars))
        reach = 1.06 * max(map(abs, axes.dataLim.intervalx))
        reach = reach if np.isfinite(reach) and reach > 0 else 1.0
        axes.set_xlim(-reach, reach)
        format_ticks(axes.xaxis, formatter, most=4)
        axes.axvline(0, color="#000000", linewidth=1.2, zorder=1)
        _name_sides(axes, *sides)
        _legend(figure, bars, interval_name, seed_interval_name)
        return arranged(figure)


class _Rows:
    """Rows of a plot, each as high as its name needs; the y axis counts points from the top."""

    def __init__(self, bars: Sequence[Bar], formatter: Formatter, axis_name: str) -> None:
        if not bars:
            raise ValueError("there are no rows to draw")
        self.bars = bars
        self.names = [wrapped(bar.name, _NAME_EMS) for bar in bars]
        self.values = [formatter(b.value) if np.isfinite(b.value) else "–" for b in bars]
        self.name_ems = max(width_in_ems(line) for lines in self.names for line in lines)
        self.value_ems = max(map(width_in_ems, self.values))
        self.axes_ems = _EMS - self.name_ems - self.value_ems - 2.5
        self.axis_name = wrapped(axis_name, self.axes_ems + self.value_ems)
        heights = [
            max(len(lines) * LEADING * _SIZE, _LEAST_SEEDED_ROW if _has_seeds(bar) else _LEAST_ROW)
            + _BETWEEN
            for bar, lines in zip(bars, self.names, strict=True)
        ]
        self.height = sum(heights)
        self.middles = [sum(heights[:row]) + height / 2 for row, height in enumerate(heights)]

    def sides(self, left: str, right: str) -> tuple[list[str], list[str]]:
        """Lines that find room on either side of the middle, above the rows and beside them."""
        arrow = 1.5
        lines_left = wrapped(left, self.axes_ems / 2 + self.name_ems - arrow)
        lines_right = wrapped(right, self.axes_ems / 2 + self.value_ems - arrow)
        lines_left[0] = f"← {lines_left[0]}"
        lines_right[-1] = f"{lines_right[-1]} →"
        return lines_left, lines_right

    def draw(self, room_above: float, room_below: float) -> tuple[Figure, Axes]:
        """A figure with the rows; the rooms, in points, are for what else it will hold."""
        ticks_and_name = 22 + LEADING * _SIZE * len(self.axis_name)
        height = self.height + ticks_and_name + room_above + room_below
        figure, axes = new_figure(height / 72)
        for bar, value, middle in zip(self.bars, self.values, self.middles, strict=True):
            place = middle + (_ABOVE if _has_seeds(bar) else 0)
            _draw_interval(axes, place, bar.low, bar.high, COLOURS[0], 2.2)
            axes.plot(bar.value, place, "o", color=COLOURS[0], markersize=6)
            _draw_seeds(axes, middle + _BELOW, bar)
            axes.annotate(
                value,
                (1.02, place),
                xycoords=("axes fraction", "data"),
                va="center",
                annotation_clip=False,
            )
        axes.set_ylim(self.height, 0)
        axes.grid(visible=False, axis="y")
        name_rows(axes, self.middles, self.names)
        axes.set_xlabel("\n".join(self.axis_name))
        return figure, axes


def _has_seeds(bar: Bar) -> bool:
    return len(bar.seeds) > 0 or bar.seed_bounds is not None


def _draw_seeds(axes: Axes, place: float, bar: Bar) -> None:
    if bar.seed_bounds is not None:
        _draw_interval(axes, place, *bar.seed_bounds, _SEEDS, 1.0)
    if len(bar.seeds):
        axes.plot(bar.seeds, [place] * len(bar.seeds), color=_SEEDS, **_SEED_DOT)


def _draw_interval(
    axes: Axes, place: float, low: float, high: float, colour: str, width: float
) -> None:
    if np.isfinite(low) and np.isfinite(high):
        axes.plot(
            [low, high], [place, place], color=colour, linewidth=width,
            marker="|", markersize=4 + 2 * width, markeredgewidth=width,
        )  # fmt: skip


def _name_sides(axes: Axes, left: Sequence[str], right: Sequence[str]) -> None:
    """Write above the rows, to the left and right of zero, what either side means."""
    for lines, side in ((left, -1), (right, 1)):
        for index, line in enumerate(lines):
            axes.annotate(
                line,
                (0, 1),
                xycoords=("data", "axes fraction"),
                xytext=(6 * side, 5 + _SIZE * LEADING * (len(lines) - 1 - index)),
                textcoords="offset points",
                ha="right" if side < 0 else "left",
                va="baseline",
                color=GREY,
                annotation_clip=False,
            )


def _legend_height(bars: Sequence[Bar]) -> float:
    entries = 2 * any(bar.seed_bounds is not None for bar in bars) + any(len(b.seeds) for b in bars)
    return 15 * entries + 14 * bool(entries)


def _legend(figure: Figure, bars: Sequence[Bar], interval: str | None, seed_interval: str) -> None:
    handles, names = [], []
    if any(bar.seed_bounds is not None for bar in bars):
        handles += [
            Line2D([], [], color=COLOURS[0], linewidth=2.2, marker="o", markersize=6),
            Line2D([], [], color=_SEEDS, linewidth=1.0, marker="|", markersize=4),
        ]
        # Beside the interval over seeds, the name must say what this one is over.
        names += [interval or f"{_INTERVAL} over test examples", seed_interval]
    if any(len(bar.seeds) for bar in bars):
        handles.append(Line2D([], [], color=_SEEDS, **_SEED_DOT))
        names.append("single seeds")
    if handles:
        legend_below(figure, handles, names)
