"""Pictures of training and comparison, readable at a width of 400 pixels and without colour vision.

Every function returns a `matplotlib.figure.Figure`; none touches pyplot, so nothing global is left
behind and no display is needed.
"""

from __future__ import annotations

import textwrap
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.text import Text
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    NullLocator,
)

from toolkit.console import notify

# Okabe and Ito, "Color Universal Design" (2008), without the yellow that is too pale for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")
WIDTH = 4.8  # inches; at 400 px the 10 pt text is then about 11 px high
_CJK_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Microsoft YaHei",
    "SimHei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Heiti SC",
    "Heiti TC",
    "Droid Sans Fallback",
    "Arial Unicode MS",
)


@dataclass(frozen=True)
class Series:
    """A named line: values at places, with the bounds of an interval where there is one."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True)
class Bar:
    """A named value with the bounds of its interval, one row of a forest plot."""

    name: str
    value: float
    low: float
    high: float


@contextmanager
def _style() -> Iterator[None]:
    """Our settings while a figure is made or written; the caller's come back afterwards."""
    fonts = ["DejaVu Sans", *([font] if (font := cjk_font()) else [])]
    settings = {
        "font.family": fonts,
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#DDDDDD",
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "svg.fonttype": "none",  # text stays text: small, searchable, drawn in the reader's fonts
        "svg.hashsalt": "toolkit",  # the same picture gives the same file
    }
    with matplotlib.rc_context(settings):
        yield


@cache
def cjk_font() -> str | None:
    """Name of an installed font with Chinese characters, if matplotlib knows one."""
    installed = {font.name for font in fontManager.ttflist}
    return next((name for name in _CJK_FONTS if name in installed), None)


@cache
def _say_that_no_cjk_font_is_there() -> None:
    notify(
        "No font with Chinese characters is installed: PNG pictures show boxes in their place "
        "(SVG ones do not). On Debian or Ubuntu: apt-get install fonts-noto-cjk"
    )


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure as .svg or .png (by the name), creating the folder; returns the path.

    The text of an SVG stays text. A PNG with Chinese text needs a CJK font; without one a remark
    says so, once per process.
    """
    path = Path(path)
    if path.suffix not in (".svg", ".png"):
        raise ValueError(f"a figure is written as .svg or .png, not {path.name!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".png" and cjk_font() is None and _has_wide_characters(figure):
        _say_that_no_cjk_font_is_there()
    # A date in the file would make every run of the same report a change.
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    with _style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(path, dpi=200, facecolor="white", metadata=metadata, bbox_inches="tight")
    return path


def _has_wide_characters(figure: Figure) -> bool:
    texts = "".join(text.get_text() for text in figure.findobj(Text))
    return any(unicodedata.east_asian_width(character) in "WF" for character in texts)


def learning_curve(series: Sequence[Series]) -> Figure:
    """Accuracy against the number of training labels (log scale), one line per method.

    Error bars are the intervals given in the series; methods are set slightly apart sideways so
    that bars at the same number of labels do not hide each other.
    """
    with _style():
        figure, axes = _figure(height=3.0 + 0.24 * len(series))
        for index, line in enumerate(series):
            shift = 1 + 0.025 * (index - (len(series) - 1) / 2)
            _draw_series(axes, line, index, [place * shift for place in line.x])
        axes.set_xscale("log")
        places = sorted({place for line in series for place in line.x})
        axes.xaxis.set_major_locator(FixedLocator(_apart(places)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(_percent))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10], min_n_ticks=3))
        axes.set_xlabel("labelled training examples (log scale)")
        axes.set_ylabel("test accuracy")
        _legend_below(figure, axes, columns=1)
    return figure


def training_curves(
    loss: Sequence[tuple[float, float]],
    validation: Sequence[tuple[float, float]] = (),
    validation_name: str = "validation accuracy",
    best_step: float | None = None,
) -> Figure:
    """Training loss above, a validation metric below, both against the optimizer step.

    `loss` and `validation` are (step, value) pairs in order of step; values that are not finite
    leave a gap. `best_step` marks the step whose weights were kept.
    """
    with _style():
        panels = 2 if validation else 1
        figure = Figure(figsize=(WIDTH, 1.0 + 1.8 * panels), layout="constrained")
        axes = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
        _draw_steps(axes[0], loss, COLOURS[0], marker="")
        axes[0].set_ylabel("training loss")
        if validation:
            _draw_steps(axes[1], validation, COLOURS[1], marker="o")
            axes[1].set_ylabel(validation_name)
        if best_step is not None:
            for panel in axes:
                panel.axvline(best_step, color="#777777", linestyle=":", linewidth=1.2)
            axes[0].annotate(
                "kept",
                (best_step, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(-3, -2),
                textcoords="offset points",
                ha="right",
                va="top",
                color="#555555",
            )
        axes[-1].set_xlabel("optimizer step")
        axes[-1].xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    return figure


def learning_rate_curve(
    points: Sequence[tuple[float, float]],
    line: Sequence[tuple[float, float]],
    suggestion: float | None = None,
) -> Figure:
    """Loss against the learning rate (log scale): single steps, their smoothed line, a mark."""
    with _style():
        figure, axes = _figure(height=2.8)
        axes.plot(*zip(*points, strict=True), ".", color=COLOURS[4], markersize=4)
        axes.plot(*zip(*line, strict=True), color=COLOURS[0], linewidth=1.8)
        axes.set_xscale("log")
        smoothed = [loss for _, loss in line]
        span = max(smoothed[0], min(smoothed) + 1e-9) - min(smoothed)
        axes.set_ylim(min(smoothed) - 0.3 * span, smoothed[0] + 0.7 * span)  # the fall, not the end
        if suggestion is not None:
            axes.axvline(suggestion, color="#777777", linestyle=":", linewidth=1.2)
            axes.annotate(
                f" {suggestion:g}",
                (suggestion, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(2, -2),
                textcoords="offset points",
                va="top",
                color="#555555",
            )
        axes.set_xlabel("learning rate")
        axes.set_ylabel("training loss")
    return figure


def forest_plot(bars: Sequence[Bar], axis_name: str = "test accuracy") -> Figure:
    """Values with their intervals, one row each, the first on top; shares written in percent."""
    with _style():
        names = [textwrap.fill(bar.name, 24, break_on_hyphens=False) for bar in bars]
        lines = sum(name.count("\n") + 1 for name in names)
        figure, axes = _figure(height=0.9 + 0.22 * lines + 0.16 * len(bars))
        for place, bar in enumerate(bars):
            axes.errorbar(
                bar.value,
                place,
                xerr=[[bar.value - bar.low], [bar.high - bar.value]],
                fmt="o",
                color=COLOURS[0],
                markersize=6,
                linewidth=1.8,
                capsize=3,
            )
            axes.annotate(
                f"{100 * bar.value:.1f}%",
                (1.02, place),
                xycoords=("axes fraction", "data"),
                va="center",
                annotation_clip=False,
            )
        axes.set_yticks(range(len(bars)), names)
        axes.set_ylim(len(bars) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_formatter(FuncFormatter(_percent))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
        axes.set_xlabel(f"{axis_name}, 95% interval")
    return figure


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots()


def _draw_series(axes: Axes, line: Series, index: int, places: Sequence[float]) -> None:
    """One line, told apart by colour, marker and dash, so that grey print still shows which."""
    bars = None
    if line.low is not None and line.high is not None:
        bars = [
            [value - low for value, low in zip(line.y, line.low, strict=True)],
            [high - value for value, high in zip(line.y, line.high, strict=True)],
        ]
    axes.errorbar(
        places,
        line.y,
        yerr=bars,
        label=line.name,
        color=COLOURS[index % len(COLOURS)],
        marker=MARKERS[index % len(MARKERS)],
        linestyle=LINES[index % len(LINES)],
        markersize=5,
        linewidth=1.8,
        elinewidth=1.0,
        capsize=2.5,
    )


def _draw_steps(axes: Axes, pairs: Sequence[tuple[float, float]], colour: str, marker: str) -> None:
    steps, values = [step for step, _ in pairs], [value for _, value in pairs]
    axes.plot(steps, values, color=colour, marker=marker, markersize=5, linewidth=1.6)


def _percent(share: float, _: int) -> str:
    """A tick label without needless decimals: 0.8 -> "80%", 0.825 -> "82.5%"."""
    return f"{round(100 * share, 3):g}%"


def _apart(places: Sequence[float]) -> list[float]:
    """Ticks at the measured places, leaving out those whose labels would run into each other."""
    kept: list[float] = []
    for place in reversed(places):
        if not kept or kept[-1] / place >= 1.35:
            kept.append(place)
    return sorted(kept)


def _legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        [textwrap.fill(label, 46) for label in labels],
        loc="outside lower left",
        ncols=columns,
        handlelength=3.2,
    )
