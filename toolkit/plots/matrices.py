"""Confusion matrices side by side: which class was taken for which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from toolkit.plots.fonts import has_wide, width_in_ems
from toolkit.plots.labels import LEADING, name_columns, name_columns_upright, name_rows, wrapped
from toolkit.plots.style import COLOURS, POINTS, WIDTH, style, text_colour

MOST_CLASSES = 12
"""With more, cells are too small to read at 400 pixels."""
_SIZE, _SMALL = 8.5, 7.5  # of text in points
SHADES = LinearSegmentedColormap.from_list("shares", ["#FFFFFF", COLOURS[0], "#002B4D"])
_TITLE_SIZE = 9.5
_NAME_EMS, _MOST_LINES = 8, 2
_GAP, _LEAST_WIDTH, _HIGHEST_CELL = 12.0, 80.0, 36.0
_NOTE = 18.0  # height of the line at the bottom


def confusion_matrices(
    matrices: Sequence[ArrayLike], titles: Sequence[str], label_names: Sequence[str]
) -> Figure:
    """Counts of predictions by true and predicted class, one matrix per method.

    A row is a true class; the shade of a cell is its share of the row, its number the count. As
    many matrices stand in a row as can be read, three at most. Counts too long for their cells are
    written in short: 4321 as "4.3k".

    Args:
        matrices: counts, each of shape (C, C), C at most `MOST_CLASSES`.
        titles: one per matrix.
        label_names: the C classes.

    Raises:
        ValueError: no matrix; more classes than can be read; shapes, titles and names that do not
            fit together; negative counts.
    """
    counts = [np.asarray(matrix) for matrix in matrices]
    _check(counts, titles, label_names)
    sizes = _sizes(counts, label_names)
    lines = [wrapped(title, sizes.width / _TITLE_SIZE, most=3) for title in titles]
    rows = [
        range(first, min(first + sizes.beside, len(counts)))
        for first in range(0, len(counts), sizes.beside)
    ]
    heads = [LEADING * _TITLE_SIZE * max(len(lines[place]) for place in row) + 6 for row in rows]
    high = sizes.cell_height * len(label_names)
    top = height = sum(heads) + (high + sizes.below) * len(rows) + _NOTE
    with style():
        figure = Figure(figsize=(WIDTH, height / 72), dpi=72)
        for row, head in zip(rows, heads, strict=True):
            bottom = top - head - high
            for column, place in enumerate(row):
                left = sizes.left + column * (sizes.width + _GAP)
                axes = figure.add_axes(
                    (left / POINTS, bottom / height, sizes.width / POINTS, high / height)
                )
                _draw_cells(axes, counts[place], sizes)
                _write_title(axes, lines[place])
                _name_classes(axes, label_names, sizes, with_rows=column == 0)
            top = bottom - sizes.below
        figure.text(0, 4 / height, "Shade: share of the true class (of the row).", fontsize=_SIZE)
    return figure


@dataclass(frozen=True)
class _Sizes:
    """In points: of a matrix and its cells, and the room that names take beside and below."""

    beside: int
    width: float
    cell_height: float
    left: float
    names: float
    upright: bool
    count_size: float
    write: Callable[[int], str]

    @property
    def below(self) -> float:
        """From the cells to the title of the next row: names, "predicted", a gap."""
        return self.names + 2.4 * _SIZE + 10


def _sizes(matrices: Sequence[NDArray[np.integer]], label_names: Sequence[str]) -> _Sizes:
    classes = len(label_names)
    widest = max(width_in_ems(line) for name in label_names for line in _row_name(name))
    left = widest * _SIZE + 8 + 2 * _SIZE
    largest = max(int(matrix.max()) for matrix in matrices)
    need = max(width_in_ems(f"{largest:,}") * _SIZE + 2, _MOST_LINES * LEADING * _SIZE)
    for beside in range(min(3, len(matrices)), 0, -1):
        width = (POINTS - left - (beside - 1) * _GAP) / beside
        if width / classes >= need and width >= _LEAST_WIDTH:
            break
    upright = not _fit(label_names, width / classes)
    if upright:
        names = widest * _SIZE
    else:
        names = LEADING * _SIZE * max(len(_column_name(n, width / classes)) for n in label_names)
    height = min(max(width / classes, _MOST_LINES * LEADING * _SIZE + 2), _HIGHEST_CELL)
    count_size, write = _legible(largest, width / classes - 2)
    return _Sizes(beside, width, height, left, names, upright, count_size, write)


def _legible(largest: int, room: float) -> tuple[float, Callable[[int], str]]:
    """Size and form in which counts find room in a cell."""
    for size, write in ((_SIZE, "{:,}".format), (_SIZE, str), (_SMALL, str), (_SIZE, _in_short)):
        if width_in_ems(write(largest)) * size <= room:
            return size, write
    return _SMALL, _in_short


def _in_short(count: int) -> str:
    """987 -> "987", 4321 -> "4.3k", 54321 -> "54k", 7654321 -> "7.7M"."""
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.{0 if count >= 10 * size else 1}f}{letter}"
    return str(count)


def _fit(label_names: Sequence[str], cell: float) -> bool:
    """Whether the names stand in the width of a cell without a word being parted."""
    return all(
        width_in_ems(line) * _SIZE <= cell - 2
        for name in label_names
        for word in name.split()
        for line in (wrapped(word, 2) if has_wide(word) else [word])
    ) and all(len(_column_name(name, cell)) <= 3 for name in label_names)


def _row_name(name: str) -> list[str]:
    return wrapped(name, _NAME_EMS, most=_MOST_LINES)


def _column_name(name: str, cell: float) -> list[str]:
    return wrapped(name, (cell - 2) / _SIZE)


def _draw_cells(axes: Axes, matrix: NDArray[np.integer], sizes: _Sizes) -> None:
    totals = matrix.sum(axis=1, keepdims=True)
    shares = np.divide(matrix, totals, out=np.zeros(matrix.shape), where=totals > 0)
    classes = len(matrix)
    axes.pcolormesh(
        np.arange(classes + 1) - 0.5, np.arange(classes + 1) - 0.5, shares,
        cmap=SHADES, vmin=0, vmax=1, edgecolors="#BBBBBB", linewidth=0.5,
    )  # fmt: skip
    for (row, column), count in np.ndenumerate(matrix):
        axes.text(
            column, row, sizes.write(int(count)), ha="center", va="center",
            fontsize=sizes.count_size, color=text_colour(SHADES(shares[row, column])),
        )  # fmt: skip
    axes.set_xlim(-0.5, classes - 0.5)
    axes.set_ylim(classes - 0.5, -0.5)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def _write_title(axes: Axes, lines: Sequence[str]) -> None:
    for index, line in enumerate(lines):
        axes.annotate(
            line,
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 5 + LEADING * _TITLE_SIZE * (len(lines) - 1 - index)),
            textcoords="offset points",
            fontsize=_TITLE_SIZE,
            annotation_clip=False,
        )


def _name_classes(
    axes: Axes, label_names: Sequence[str], sizes: _Sizes, *, with_rows: bool
) -> None:
    rows = [_row_name(name) if with_rows else [] for name in label_names]
    name_rows(axes, range(len(rows)), rows, _SIZE)
    if sizes.upright:
        name_columns_upright(axes, [_row_name(name) for name in label_names], _SIZE)
    else:
        cell = sizes.width / len(label_names)
        name_columns(axes, [_column_name(name, cell) for name in label_names], _SIZE)
    axes.annotate(
        "predicted", (0.5, 0), xycoords="axes fraction",
        xytext=(0, -sizes.names - 2 * _SIZE), textcoords="offset points",
        ha="center", va="baseline", fontsize=_SIZE, annotation_clip=False,
    )  # fmt: skip
    if with_rows:
        axes.annotate(
            "true", (0, 0.5), xycoords="axes fraction",
            xytext=(-sizes.left + _SIZE, 0), textcoords="offset points", rotation=90,
            rotation_mode="anchor", ha="center", fontsize=_SIZE, annotation_clip=False,
        )  # fmt: skip


def _check(
    matrices: Sequence[NDArray[np.integer]], titles: Sequence[str], label_names: Sequence[str]
) -> None:
    classes = len(label_names)
    if not len(matrices) or not classes:
        raise ValueError("there are no matrices to draw")
    if classes > MOST_CLASSES:
        raise ValueError(f"{classes} classes; a matrix of more than {MOST_CLASSES} is not legible")
    if len(titles) != len(matrices):
        raise ValueError(f"{len(titles)} titles for {len(matrices)} matrices")
    for matrix, title in zip(matrices, titles, strict=True):
        if matrix.shape != (classes, classes):
            raise ValueError(f"{title}: shape {matrix.shape} for {classes} classes")
        if (matrix < 0).any():
            raise ValueError(f"{title}: negative counts")
