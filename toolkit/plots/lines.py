"""Values at places as lines, either axis linear or logarithmic."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from toolkit.plots.curves import Series, apart, draw_series
from toolkit.plots.labels import legend_below
from toolkit.plots.style import (
    Formatter,
    arranged,
    new_figure,
    number_tick,
    percent_tick,
    style,
)

_FEW_DECADES = 7  # more of them are not all named


def line_plot(
    series: Sequence[Series],
    x_name: str,
    y_name: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
    percent: bool = False,
) -> Figure:
    """One line a series, with error bars where it has bounds; legend below.

    A logarithmic x axis has its ticks at the measured places. What lies at or below 0 of a
    logarithmic y axis is left out.

    Args:
        percent: values are shares, written in percent.

    Raises:
        ValueError: there is no series.
    """
    if not series:
        raise ValueError("there are no lines to draw")
    with style():
        figure, axes = new_figure(height=3.0 + 0.24 * len(series))
        if log_y:  # before drawing: error bars that end at 0 are cut, not lost
            axes.set_yscale("log", nonpositive="clip")
        for index, line in enumerate(series):
            draw_series(axes, line, index, line.x)
        if log_x:
            axes.set_xscale("log")
            _places_as_ticks(axes.xaxis, series)
        else:
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
            axes.xaxis.set_major_formatter(FuncFormatter(number_tick))
        write = percent_tick if percent else number_tick
        if log_y:
            _decades(axes.yaxis, write)
        else:
            axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10], min_n_ticks=3))
            axes.yaxis.set_major_formatter(FuncFormatter(write))
        axes.set_xlabel(f"{x_name} (log scale)" if log_x else x_name)
        axes.set_ylabel(f"{y_name} (log scale)" if log_y else y_name)
        legend_below(figure, axes.containers, [line.name for line in series])
        return arranged(figure)


def _places_as_ticks(axis: Axis, series: Sequence[Series]) -> None:
    places = sorted({place for line in series for place in line.x})
    axis.set_major_locator(FixedLocator(apart(places)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _decades(axis: Axis, write: Formatter) -> None:
    """Ticks at powers of ten, and at 2 and 5 times them where there are few."""
    low, high = axis.get_view_interval()
    decades = high / low
    subs = (1.0,) if decades > 1000 else (1.0, 3.0) if decades > 30 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(subs=subs, numticks=_FEW_DECADES))
    axis.set_minor_formatter(NullFormatter())
    far = low < 1e-4 or high >= 1e6
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.0e}" if far else write(v)))
