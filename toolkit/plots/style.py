"""How every picture looks: colours, markers and dashes, settings, ticks."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator

from toolkit.plots.fonts import cjk_font

Formatter = Callable[[float], str]

# Okabe and Ito, "Color Universal Design" (2008), without the yellow that is too pale for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (8, 2)),
    (0, (5, 1.5, 1, 1.5, 1, 1.5)),
    (0, (2, 1)),
)
_MORE_MARKERS = ("*", "<", ">", "d", "p", "x", "+")
WIDTH = 4.8  # inches; at 400 px the 10 pt text is then about 11 px high
POINTS = 72 * WIDTH
GREY = "#555555"


@contextmanager
def style() -> Iterator[None]:
    """Our settings while a figure is made or written; the caller's come back afterwards.

    A missing Chinese font is said where it matters (`save_figure`), not at every character.
    """
    settings = {
        # The last one is for readers who have neither: any font without serifs.
        "font.family": ["DejaVu Sans", *([font] if (font := cjk_font()) else []), "sans-serif"],
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#DDDDDD",
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "text.parse_math": False,  # a dollar sign in a name is a dollar sign
        "svg.fonttype": "none",  # text stays text: small, searchable, drawn in the reader's fonts
        "svg.hashsalt": "toolkit",  # the same picture gives the same file
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def new_figure(height: float) -> tuple[Figure, Axes]:
    """A figure of our width and the height given (inches), with one place to draw."""
    figure = Figure(figsize=(WIDTH, height), dpi=72, layout="constrained")
    return figure, figure.subplots()


def arranged(figure: Figure) -> Figure:
    """The figure with its parts in their final places.

    Matplotlib would arrange them anew, and a little differently, at every drawing: a figure's
    second file would not be its first.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def look(index: int) -> dict[str, Any]:
    """Colour, marker and dash of the method at a place, as keywords of `Axes.plot`.

    Marker (its shape, filled or open) tells the first 21 apart without colour, the dash the first
    7; those that share a colour differ in both.
    """
    rounds, place = divmod(index, len(COLOURS))
    marker = (MARKERS, MARKERS, _MORE_MARKERS)[rounds % 3][place]
    keywords = {
        "color": COLOURS[place],
        "marker": marker,
        "linestyle": LINES[(index + rounds) % len(LINES)],
        "markersize": 7 if marker == "*" else 5.5 if marker in "x+" else 5,
    }
    if rounds % 3 == 1:
        keywords["markerfacecolor"] = "white"
    return keywords


def percent(share: float) -> str:
    """0.8432 -> "84.3%"."""
    return f"{100 * share:.1f}%"


def percent_tick(share: float, _: int = 0) -> str:
    """A tick label without needless decimals: 0.8 -> "80%", 0.825 -> "82.5%"."""
    return f"{round(100 * share, 3):g}%"


def number_tick(value: float, _: int = 0) -> str:
    """12000 -> "12,000", 2500000 -> "2.5M", 0.25 -> "0.25"."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:,g}M"
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"


def format_ticks(axis: Axis, formatter: Formatter, most: int = 5) -> None:
    """Few round ticks within the present limits of an axis, written as the values are.

    Decimals that are zero go. There are as many ticks as the formatter can tell apart: with one
    decimal, 80.02% and 80.04% would both read 80.0%.
    """
    low, high = sorted(axis.get_view_interval())
    for bins in range(most, 0, -1):
        candidates = MaxNLocator(nbins=bins, steps=[1, 2, 5, 10]).tick_values(low, high)
        places = [float(place) for place in candidates if low <= place <= high]
        labels = [_tick_label(formatter, place) for place in places]
        if len(set(labels)) == len(labels):
            break
    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter(FixedFormatter(labels))


def _tick_label(formatter: Formatter, place: float) -> str:
    """Without needless decimals, and without a sign for zero: "+0.0" -> "0"."""
    text = formatter(abs(place)).lstrip("+") if place == 0 else formatter(place)
    return re.sub(r"\.(\d*?)0+(?!\d)", lambda found: f".{found[1]}" if found[1] else "", text)


def luminance(colour: Any) -> float:
    """Relative luminance, 0 for black to 1 for white (Web Content Accessibility Guidelines 2.2)."""
    channels = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in to_rgb(colour)
    )
    return sum(w * part for w, part in zip((0.2126, 0.7152, 0.0722), channels, strict=True))


def text_colour(ground: Any) -> str:
    """Black or white, whichever stands out more from a ground (contrast of the same guidelines)."""
    black, white = luminance(ground) + 0.05, 1.05 / (luminance(ground) + 0.05)
    return "#000000" if black / 0.05 >= white else "#FFFFFF"
