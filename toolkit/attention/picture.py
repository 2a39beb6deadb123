"""Attention as a picture that stands still: all layers and heads, one of them, or one layer."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from toolkit.attention.page import display_name, summaries
from toolkit.attention.reading import Reading
from toolkit.attention.weights import AttentionMaps
from toolkit.errors import UserError
from toolkit.plots.fonts import width_in_ems
from toolkit.plots.labels import LEADING, name_columns_upright, name_rows, wrapped
from toolkit.plots.matrices import SHADES
from toolkit.plots.saving import save_figure
from toolkit.plots.style import POINTS, style

_SIZE, _TITLE_SIZE = 8.5, 9.5
_GAP = 2.0  # points between two maps
_BESIDE = 4  # maps in a row where they do not stand by layer
_LEAST_CELL = 6.0  # points; tokens of smaller ones are not named
_STRENGTH = 0.6  # of the colours laid over an image


@dataclass(frozen=True)
class _Map:
    """One picture and its name: colours float [queries or height, keys or width, 3], 0 to 1."""

    name: str
    colours: NDArray[np.floating]


def draw(
    reading: Reading, kind: str | None = None, layer: int | None = None, head: str | None = None
) -> Figure:
    """All maps in a grid of layers and heads, or those of one layer, one head, or both.

    Args:
        kind: of an encoder-decoder; None: cross.
        layer: from 1 on.
        head: a number from 1 on, or "mean" or "rollout".

    Raises:
        UserError: there is no such attention, layer or head.
    """
    maps = _choose(reading, kind)
    names = [str(number + 1) for number in range(maps.heads)] + list(summaries(maps))
    if layer is not None and not 1 <= layer <= maps.layers:
        raise UserError(f"--layer {layer}: the model has layers 1 to {maps.layers}.")
    if head is not None and head not in names:
        more = ", ".join(names[maps.heads :])
        raise UserError(f"--head {head}: every layer has heads 1 to {maps.heads}, and {more}.")
    layers = range(maps.layers) if layer is None else [layer - 1]
    heads = range(len(names)) if head is None else [names.index(head)]
    colours = _colours(reading, maps)
    grid = [[_Map(names[h], colours[row][h]) for h in heads] for row in layers]
    read = " / ".join(reading.texts)
    if reading.written is not None:
        read = f"{read} → {reading.written}"
    title = f"{display_name(reading.model)}, {maps.kind} attention: {read}"
    note = _note(reading)
    if len(layers) == 1 and len(heads) == 1:
        where = f"layer {layers[0] + 1}, {_head(names[heads[0]])}"
        return _draw_one(grid[0][0], maps, f"{title} ({where})", note, reading.image is not None)
    if layer is None and head is None:
        return _draw_grid(grid, [f"Layer {row + 1}" for row in layers], title, note)
    if head is None:
        found = [_Map(_head(item.name), item.colours) for item in grid[0]]
        return _draw_grid(_rows(found), None, f"{title} (layer {layer})", note)
    found = [_Map(f"layer {row + 1}", grid[row][0].colours) for row in layers]
    return _draw_grid(_rows(found), None, f"{title} ({_head(head)})", note)


def write_picture(figure: Figure, file: Path, suffix: str) -> None:
    """Write a figure as .png or .svg, whatever the file is called."""
    from toolkit.report.svg import portable_svg

    with tempfile.TemporaryDirectory() as folder:
        made = save_figure(figure, Path(folder) / f"picture{suffix}")
        if suffix == ".svg":
            file.write_text(portable_svg(made.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            shutil.copyfile(made, file)


def _choose(reading: Reading, kind: str | None) -> AttentionMaps:
    if kind is None:
        kind = "cross" if "cross" in reading.maps else next(iter(reading.maps))
    for known, maps in reading.maps.items():
        if known == kind:
            return maps
    raise UserError(f"--kind {kind}: {reading.model} has {', '.join(reading.maps)} attention only.")


def _head(name: str) -> str:
    return f"head {name}" if name.isdecimal() else name


def _rows(found: Sequence[_Map]) -> list[list[_Map]]:
    return [list(found[start : start + _BESIDE]) for start in range(0, len(found), _BESIDE)]


def _note(reading: Reading) -> str:
    if reading.image is not None:
        who = "the class token" if reading.image.first else "the upper left patch"
        return f"Yellow: where {who} looks; dark blue: where not."
    return "Rows look at columns. Shade: square root of the share, white 0 %, darkest 100 %."


def _colours(reading: Reading, maps: AttentionMaps) -> list[list[NDArray[np.floating]]]:
    """Of every layer the heads', then the summaries'."""
    beside = summaries(maps)
    tables = [
        [*maps.weights[layer].numpy(), *(part[layer].numpy() for part in beside.values())]
        for layer in range(maps.layers)
    ]
    image = reading.image
    if image is None:
        return [[SHADES(np.sqrt(table.clip(0, 1)))[..., :3] for table in row] for row in tables]
    pixels = image.pixels / 255.0

    def lit(table: NDArray[np.floating]) -> NDArray[np.floating]:
        light = table[0, image.first :].reshape(image.rows, image.columns)
        light = light / max(float(light.max()), 1e-12)
        height, width = pixels.shape[0] // image.rows, pixels.shape[1] // image.columns
        light = light.repeat(height, 0).repeat(width, 1)
        seen = pixels[: light.shape[0], : light.shape[1]]
        return seen * (1 - _STRENGTH) + colormaps["cividis"](light)[..., :3] * _STRENGTH

    return [[lit(table) for table in row] for row in tables]


def _draw_grid(
    grid: Sequence[Sequence[_Map]], names: Sequence[str] | None, title: str, note: str
) -> Figure:
    """Rows of maps; with row names the columns are named once, else every map is."""
    left = 0.0 if names is None else max(width_in_ems(name) for name in names) * _SIZE + 6
    columns = max(len(row) for row in grid)
    width = (POINTS - left - (columns - 1) * _GAP) / columns
    shape = grid[0][0].colours.shape
    high = width * min(max(shape[0] / shape[1], 0.25), 4)
    named = LEADING * _SIZE + 2
    lines = wrapped(title, POINTS / _TITLE_SIZE, most=3)
    head = LEADING * _TITLE_SIZE * len(lines) + 6
    rows = [row * (high + (_GAP if names else named)) for row in range(len(grid) + 1)]
    height = head + named + rows[-1] + LEADING * _SIZE + 8
    with style():
        figure = Figure(figsize=(POINTS / 72, height / 72), dpi=72)
        _write(figure, lines, note, height)
        for row, maps in enumerate(grid):
            top = height - head - named - rows[row]
            if names is not None:
                figure.text(
                    (left - 6) / POINTS, (top - high / 2) / height, names[row],
                    ha="right", va="center", fontsize=_SIZE,
                )  # fmt: skip
            for column, item in enumerate(maps):
                x = left + column * (width + _GAP)
                axes = figure.add_axes(
                    (x / POINTS, (top - high) / height, width / POINTS, high / height)
                )
                _show(axes, item)
                if names is None or row == 0:
                    _name_map(axes, item.name, width)
    return figure


def _draw_one(item: _Map, maps: AttentionMaps, title: str, note: str, is_image: bool) -> Figure:
    rows, columns = item.colours.shape[:2]
    left = top = 0.0
    if not is_image:
        left = _room(maps.queries.labels)
        top = _room(maps.keys.labels)
    cell = min((POINTS - left) / columns, 24.0) if not is_image else POINTS / columns
    named = not is_image and cell >= _LEAST_CELL
    if not named:
        left = top = 0.0
        cell = POINTS / columns
    width, high = cell * columns, cell * rows
    lines = wrapped(title, POINTS / _TITLE_SIZE, most=4)
    head = LEADING * _TITLE_SIZE * len(lines) + 6
    height = head + high + top + LEADING * _SIZE + 8
    with style():
        figure = Figure(figsize=(POINTS / 72, height / 72), dpi=72)
        _write(figure, lines, note, height)
        bottom = height - head - high
        axes = figure.add_axes((left / POINTS, bottom / height, width / POINTS, high / height))
        _show(axes, item)
        if named:
            size = min(_SIZE, cell)
            name_rows(axes, range(rows), [[label] for label in maps.queries.labels], size)
            name_columns_upright(axes, [[label] for label in maps.keys.labels], size)
    return figure


def _room(labels: Sequence[str]) -> float:
    """For the names of tokens, in points."""
    return max(map(width_in_ems, labels)) * _SIZE + 8


def _write(figure: Figure, title: Sequence[str], note: str, height: float) -> None:
    for number, line in enumerate(title):
        y = height - LEADING * _TITLE_SIZE * (number + 1)
        figure.text(0, y / height, line, fontsize=_TITLE_SIZE)
    figure.text(0, 3 / height, note, fontsize=_SIZE)


def _show(axes: Axes, item: _Map) -> None:
    axes.imshow(item.colours, interpolation="nearest", aspect="auto")
    axes.grid(visible=False)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color("#BBBBBB")
        spine.set_linewidth(0.5)


def _name_map(axes: Axes, name: str, width: float) -> None:
    size = min(_SIZE, _SIZE * width / (width_in_ems(name) * _SIZE))
    axes.annotate(
        name, (0.5, 1), xycoords="axes fraction", xytext=(0, 3), textcoords="offset points",
        ha="center", fontsize=size, annotation_clip=False,
    )  # fmt: skip
