"""Figures as files."""

from __future__ import annotations

import io
import re
from functools import cache
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from toolkit.console import notify
from toolkit.plots.fonts import cjk_font, has_wide, width_in_ems
from toolkit.plots.style import style

_MARGIN = 0.1  # inches around everything


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
    if path.suffix == ".svg":
        path.write_text(figure_as_svg(figure), encoding="utf-8")
        return path
    if cjk_font() is None and _wide_texts(figure):
        _say_that_no_cjk_font_is_there()
    with style():
        figure.savefig(path, dpi=200, facecolor="white", metadata={"Software": None},
                       bbox_inches="tight", pad_inches=_MARGIN)  # fmt: skip
    return path


def figure_as_svg(figure: Figure) -> str:
    """The SVG document that `save_figure` writes."""
    file = io.StringIO()
    with style():
        box = _whole(figure) if cjk_font() is None and _wide_texts(figure) else "tight"
        # A date in the file would make every run of the same report a change.
        figure.savefig(file, format="svg", facecolor="white", metadata={"Date": None},
                       bbox_inches=box, pad_inches=_MARGIN)  # fmt: skip
    return _with_short_paths(file.getvalue())


def _with_short_paths(svg: str) -> str:
    """Paths in half the room: coordinates to an invisible hundredth of a point, no needless L.

    Pairs of coordinates that follow those of an M or an L are lines without saying so (SVG 2,
    section 9.3).
    """
    return re.sub(r'(?<=\sd=")[^"]*', lambda found: _short_path(found[0]), svg)


def _short_path(path: str) -> str:
    words = [
        word if word.isalpha() else f"{float(word):.2f}".rstrip("0").rstrip(".")
        for word in path.split()
    ]
    command, kept = "", []
    for word in words:
        if not word.isalpha() or word != "L" or command not in "ML":
            kept.append(word)
        command = word if word.isalpha() else command
    return " ".join(kept)


def _wide_texts(figure: Figure) -> list[Text]:
    return [text for text in figure.findobj(Text) if has_wide(text.get_text())]


def _whole(figure: Figure) -> Bbox:
    """What an SVG must show (inches) where we cannot measure Chinese text, for want of a font.

    Matplotlib then takes every character for a narrow box; the reader's program draws it wider, to
    the side where the text is not held fast, and would cut it at the edge.
    """
    figure.draw_without_rendering()
    boxes = [figure.get_tightbbox().padded(_MARGIN)]
    for text in _wide_texts(figure):
        if not text.get_visible():
            continue
        measured = text.get_window_extent()
        upright = float(text.get_rotation()) % 180 == 90
        size = float(text.get_fontsize()) / 72 * figure.dpi
        width = size * max(width_in_ems(line) for line in text.get_text().split("\n"))
        more = max(0.0, width - (measured.height if upright else measured.width))
        before = {"left": 0.0, "center": more / 2, "right": more}[text.get_horizontalalignment()]
        across = (0.0, before) if upright else (before, 0.0)
        along = (0.0, more - before) if upright else (more - before, 0.0)
        box = Bbox.from_extents(measured.x0 - across[0], measured.y0 - across[1],
                                measured.x1 + along[0], measured.y1 + along[1])  # fmt: skip
        boxes.append(Bbox(box.get_points() / figure.dpi).padded(_MARGIN))
    return Bbox.union(boxes)
