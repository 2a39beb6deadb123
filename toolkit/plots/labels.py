"""Names in pictures, wrapped by the width they take, Chinese ones between any two characters.

Every line of a name is a text of its own: then an SVG says at which end it is held fast, and it
stays in its place in whatever font the reader's program draws it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.plots.fonts import has_wide, is_wide, width_in_ems
from toolkit.plots.style import POINTS

LEADING = 1.2  # of a line's height over its size
_NO_LINE_BEGINS_WITH = "，。、；：！？）》」』】”’％…,.;:!?)]}%"
_NO_LINE_ENDS_WITH = "（《「『【“‘([{"


def wrapped(text: str, ems: float, most: int | None = None) -> list[str]:
    """Lines of a text, each at most so many ems wide, at least one.

    Breaks at spaces and between Chinese characters; in longer words after ``/ - _ .``, and at last
    anywhere. With more than `most` lines the last one ends in an ellipsis.
    """
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    lines = [""]
    for piece in _pieces(text, ems):
        if lines[-1] and width_in_ems((lines[-1] + piece).rstrip()) > ems:
            lines.append(piece.lstrip())
        else:
            lines[-1] += piece
    lines = [line.rstrip() for line in lines]
    if most is not None and len(lines) > most:
        last = lines[most - 1]
        while last and width_in_ems(last) + 1 > ems:
            last = last[:-1]
        lines = [*lines[: most - 1], f"{last.rstrip()}…"]
    return lines


def _pieces(text: str, ems: float) -> Iterator[str]:
    """What is not parted: words, single Chinese characters; parts of words that are too long."""
    for word in _words(text):
        if width_in_ems(word.rstrip()) <= ems:
            yield word
            continue
        for part in _parts(word):
            while width_in_ems(part.rstrip()) > ems:
                length = next(n for n in range(len(part), 0, -1)
                              if n == 1 or width_in_ems(part[:n]) <= ems)  # fmt: skip
                yield part[:length]
                part = part[length:]
            yield part


def longest_word_ems(text: str) -> float:
    """The width of the longest part of a text that `wrapped` leaves whole where it fits."""
    words = [part for word in _words(text) for part in _parts(word.rstrip())]
    return max(map(width_in_ems, words), default=0.0)


def _parts(word: str) -> list[str]:
    """What a word that is too long is first parted into, after ``/ - _ .``."""
    return re.findall(r"[^/_.-]*[/_.-]+|[^/_.-]+", word)


def _words(text: str) -> Iterator[str]:
    start = 0
    for place in range(1, len(text)):
        if _may_part(text[place - 1], text[place]):
            yield text[start:place]
            start = place
    yield text[start:]


def _may_part(before: str, after: str) -> bool:
    if before == " ":
        return True
    if after == " " or after in _NO_LINE_BEGINS_WITH or before in _NO_LINE_ENDS_WITH:
        return False
    return is_wide(before) or is_wide(after)


def name_rows(
    axes: Axes, places: Sequence[float], rows: Sequence[Sequence[str]], size: float = 10
) -> None:
    """Write the lines of every name left of the axes, beside its place on the y axis."""
    axes.set_yticks(places, [""] * len(places))
    axes.tick_params(axis="y", length=0)
    for place, lines in zip(places, rows, strict=True):
        for index, line in enumerate(lines):
            above = LEADING * ((len(lines) - 1) / 2 - index)
            axes.annotate(
                line,
                (0, place),
                xycoords=("axes fraction", "data"),
                xytext=(-6, (above - 0.36) * size),
                textcoords="offset points",
                ha="right",
                va="baseline",
                fontsize=size,
                annotation_clip=False,
            )


def name_columns(axes: Axes, columns: Sequence[Sequence[str]], size: float = 10) -> None:
    """Write the lines of every name below the axes, the first at 0 of the x axis, no ticks."""
    axes.set_xticks(range(len(columns)), [""] * len(columns))
    axes.tick_params(axis="x", length=0)
    for place, lines in enumerate(columns):
        for index, line in enumerate(lines):
            axes.annotate(
                line,
                (place, 0),
                xycoords=("data", "axes fraction"),
                xytext=(0, -5 - (0.8 + LEADING * index) * size),
                textcoords="offset points",
                ha="center",
                va="baseline",
                fontsize=size,
                annotation_clip=False,
            )


def name_columns_upright(axes: Axes, columns: Sequence[Sequence[str]], size: float = 10) -> None:
    """The same, read from below, for names that are wider than their columns."""
    axes.set_xticks(range(len(columns)), [""] * len(columns))
    axes.tick_params(axis="x", length=0)
    for place, lines in enumerate(columns):
        for index, line in enumerate(lines):
            beside = LEADING * (index - (len(lines) - 1) / 2)
            axes.annotate(
                line,
                (place, 0),
                xycoords=("data", "axes fraction"),
                xytext=((beside + 0.36) * size, -5),
                textcoords="offset points",
                ha="right",
                va="baseline",
                rotation=90,
                rotation_mode="anchor",
                fontsize=size,
                annotation_clip=False,
            )


def legend_below(figure: Figure, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Names of what is drawn, in one column, or two where there are many and they are short."""
    handle, gap = 3.2, 2.5
    half = (POINTS / 10) / 2 - handle - gap
    short = all(width_in_ems(name) <= half and not has_wide(name) for name in names)
    columns = 2 if short and len(names) > 4 else 1
    room = POINTS / 10 - handle - gap if columns == 1 else half
    # A name that begins with an underscore would be left out: matplotlib keeps those for itself.
    legend = figure.legend(
        handles,
        [str(place) for place in range(len(names))],
        loc="outside lower left",
        ncols=columns,
        handlelength=handle,
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text("\n".join(wrapped(name, room)))
