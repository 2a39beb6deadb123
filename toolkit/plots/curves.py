"""Several methods as lines: against the number of labels, and over a training of several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)
from numpy.typing import NDArray

from toolkit.plots.labels import legend_below
from toolkit.plots.style import GREY, arranged, look, new_figure, number_tick, percent_tick, style
from toolkit.plots.thinning import columns_for, is_drawn_whole, thinned, thinned_band

Floats = NDArray[np.float64]

_MARKED = 15  # a line of at most so many points shows each of them
_MARKS = 5  # a longer one shows so many
_DENSE = 200  # points; a line of more is drawn thinner


@dataclass(frozen=True)
class Series:
    """A named line: values at places, with the bounds of an interval where there is one.

    `number` as in `Band`.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    number: int | None = None


@dataclass(frozen=True)
class Band:
    """A named curve over several runs: at every place their mean and the bounds around it.

    `x` does not fall; what is not finite is a gap. With one run there are no bounds to show.
    `number` gives the line its look, so that a method looks the same in every picture; None: its
    place among the lines.
    """

    name: str
    x: Sequence[float] | Floats
    mean: Sequence[float] | Floats
    low: Sequence[float] | Floats
    high: Sequence[float] | Floats
    runs: int
    number: int | None = None

    def __post_init__(self) -> None:
        lengths = {len(values) for values in (self.x, self.mean, self.low, self.high)}
        if len(lengths) > 1:
            raise ValueError(f"{self.name}: x, mean, low and high have lengths {sorted(lengths)}")
        if self.runs < 1:
            raise ValueError(f"{self.name}: a curve of {self.runs} runs")


def learning_curve(
    series: Sequence[Series], y_name: str = "test accuracy", *, percent: bool = True
) -> Figure:
    """A score against the number of training examples (log scale), one line per method.

    Error bars are the intervals given in the series; methods are set slightly apart sideways so
    that bars at the same number of labels do not hide each other.

    Args:
        percent: values are shares, written in percent.
    """
    with style():
        figure, axes = new_figure(height=3.0 + 0.24 * len(series))
        for index, line in enumerate(series):
            shift = 1 + 0.025 * (index - (len(series) - 1) / 2)
            draw_series(axes, line, index, [place * shift for place in line.x])
        axes.set_xscale("log")
        places = sorted({place for line in series for place in line.x})
        axes.xaxis.set_major_locator(FixedLocator(apart(places)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(percent_tick if percent else number_tick))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10], min_n_ticks=3))
        axes.set_xlabel("training examples (log scale)")
        axes.set_ylabel(y_name)
        legend_below(figure, axes.containers, [line.name for line in series])
        return arranged(figure)


def draw_series(axes: Axes, line: Series, index: int, places: Sequence[float]) -> None:
    """Draw one line at these places (its x, or a little beside it) with its error bars."""
    bars = None
    if line.low is not None and line.high is not None:
        bars = [
            [value - low for value, low in zip(line.y, line.low, strict=True)],
            [high - value for value, high in zip(line.y, line.high, strict=True)],
        ]
    appearance = look(index if line.number is None else line.number)
    axes.errorbar(
        places, line.y, yerr=bars, **appearance, linewidth=1.8, elinewidth=1.0, capsize=2.5
    )


def apart(places: Sequence[float]) -> list[float]:
    """Ticks at the measured places, leaving out those whose labels would run into each other."""
    kept: list[float] = []
    for place in reversed(places):
        if not kept or kept[-1] / place >= 1.35:
            kept.append(place)
    return sorted(kept)


def seed_curves(
    bands: Sequence[Band],
    x_name: str,
    y_name: str,
    *,
    target: float | None = None,
    percent: bool = False,
    log_x: bool = False,
) -> Figure:
    """A value in the course of training, one line per method with the band of its runs.

    Curves of thousands of points are thinned to what the picture can show. What is not finite is a
    gap; what lies at or below 0 of a log axis is left out.

    Args:
        target: a value to reach, drawn as a horizontal line with its number.
        percent: values and target are shares, written in percent.
        log_x: the x axis is logarithmic.

    Raises:
        ValueError: no bands, or `x` of one of them falls or is not finite.
    """
    if not bands:
        raise ValueError("there are no curves to draw")
    write = percent_tick if percent else number_tick
    with style():
        figure, axes = new_figure(height=3.0 + 0.22 * len(bands))
        columns = columns_for(len(bands))
        lines = [
            _draw_band(axes, band, index, len(bands), columns, log_x)
            for index, band in enumerate(bands)
        ]
        if target is not None:
            _draw_target(axes, target, f"target\n{write(target)}")
        if log_x:
            _log_axis(axes, bands)
        else:
            axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
            axes.xaxis.set_major_formatter(FuncFormatter(number_tick))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10], min_n_ticks=3))
        axes.yaxis.set_major_formatter(FuncFormatter(write))
        axes.set_xlabel(f"{x_name} (log scale)" if log_x else x_name)
        axes.set_ylabel(y_name)
        legend_below(figure, lines, _legend_names(bands))
        return arranged(figure)


def _legend_names(bands: Sequence[Band]) -> list[str]:
    """Says of a line without a band that it has one run, where others have more."""
    some = any(band.runs > 1 for band in bands)
    names = []
    for band in bands:
        remark = " (1 run)" if some and band.runs == 1 else ""
        if not np.isfinite(np.asarray(band.mean, dtype=float)).any():
            remark = " (no values)"
        names.append(band.name + remark)
    return names


def _draw_band(axes: Axes, band: Band, index: int, lines: int, columns: int, log_x: bool) -> Line2D:
    """Draw one method; returns how it looks, for the legend."""
    x = np.asarray(band.x, dtype=float)
    if not np.isfinite(x).all() or (np.diff(x) < 0).any():
        raise ValueError(f"{band.name}: x must be finite and not fall")
    drawable = x > 0 if log_x else np.full(len(x), True)
    x = x[drawable]
    mean, low, high = (
        np.where(np.isfinite(values), values, np.nan)[drawable]
        for values in (np.asarray(v, dtype=float) for v in (band.mean, band.low, band.high))
    )
    places = np.log10(x) if log_x else x
    few = is_drawn_whole(len(x), columns)
    kept = np.arange(len(x)) if few else thinned(places, mean, columns)
    marked = kept[_marked(places[kept], mean[kept], (index + 0.5) / lines)]
    appearance = look(index if band.number is None else band.number)
    markers = appearance | {"linestyle": ""}
    width = 1.8 if len(x) <= _DENSE else 1.2
    axes.plot(x[kept], mean[kept], **appearance | {"marker": ""}, linewidth=width, zorder=3)
    axes.plot(x[marked], mean[marked], **markers, zorder=4)  # no line hides another's marker
    if band.runs > 1:
        kept = np.arange(len(x)) if few else thinned_band(places, low, high, columns)
        axes.fill_between(
            x[kept], low[kept], high[kept], where=np.isfinite(low[kept] + high[kept]),
            color=appearance["color"], alpha=0.18 if lines <= 4 else 0.12, linewidth=0,
        )  # fmt: skip
    return Line2D([], [], **appearance, linewidth=1.8)


def _marked(places: Floats, values: Floats, offset: float) -> list[int]:
    """Indices of the points that carry a marker: all of a few, else some, apart from other lines'.

    A point between gaps always carries one: no line would show it.
    """
    finite = np.isfinite(values)
    if finite.sum() <= _MARKED:
        return [int(place) for place in np.flatnonzero(finite)]
    beside = np.pad(finite, 1)
    alone = finite & ~beside[:-2] & ~beside[2:]
    width = (places[-1] - places[0]) / _MARKS
    wanted = places[0] + width * (np.arange(_MARKS) + offset)
    shown = np.flatnonzero(finite)
    nearest = [shown[np.abs(places[shown] - place).argmin()] for place in wanted]
    return sorted({int(place) for place in (*nearest, *np.flatnonzero(alone))})


def _draw_target(axes: Axes, target: float, words: str) -> None:
    axes.axhline(target, color=GREY, linestyle=(0, (1, 1.5)), linewidth=1.4, zorder=2)
    axes.annotate(
        words,
        (1.0, target),
        xycoords=("axes fraction", "data"),
        xytext=(3, 0),
        textcoords="offset points",
        va="center",
        color=GREY,
        fontsize=9,
        annotation_clip=False,
    )


def _log_axis(axes: Axes, bands: Sequence[Band]) -> None:
    places = [x for band in bands for x in band.x if x > 0]
    if not places:
        return
    axes.set_xscale("log")
    decades = np.log10(max(places) / min(places))
    subs = (1.0,) if decades > 3 else (1.0, 3.0) if decades > 1.5 else (1.0, 2.0, 5.0)
    axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=8))
    axes.xaxis.set_major_formatter(FuncFormatter(number_tick))
    axes.xaxis.set_minor_formatter(NullFormatter())
