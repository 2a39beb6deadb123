"""A report's blocks as one HTML file that needs nothing else: no network, no script, no fonts."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from functools import cache

import jinja2
from markupsafe import Markup, escape

from toolkit.report.blocks import (
    Block,
    Cell,
    Document,
    Figure,
    Link,
    Section,
    Table,
    Text,
    Thumbnail,
    as_cell,
    figures_of,
    parts,
    plain,
)
from toolkit.report.labels import labels
from toolkit.report.plain_text import display_width, has_right_to_left, is_chinese, visible
from toolkit.report.svg import inline_svg
from toolkit.report.templating import template_environment

# The darkest ground of a heat table; on it the text's colour has a contrast above 9.
_DARKEST = (158, 202, 235)
# Columns whose cells are all this short stay on one line; the others are broken into lines.
_SHORT = 18
_SHORT_NAME = 14  # a row's name that stays on one line whatever the others are, such as "97-592"
_LONG_WORD = 24  # longer ones are broken in the middle rather than to widen the column of names
_LONG_HEADING = 20  # a wider heading gets a wider column, so that it takes few lines
_THUMBNAIL = 96  # pixels of a small image's longer side on the page
_BRIEF = 4  # rows of a table that a printed page does not cut


def render_html(document: Document, figures: Mapping[str, str]) -> str:
    """The report as one HTML page with its pictures inside.

    `figures` holds the SVG of every figure by its name. Raises ValueError when one is missing.
    The page reads at a width of 400 pixels and prints on A4; folded parts are printed, too.
    """
    missing = sorted({figure.name for figure in figures_of(document.blocks)} - set(figures))
    if missing:
        raise ValueError(f"no picture was given for the figures {', '.join(missing)}")
    first = next(
        (place for place, block in enumerate(document.blocks) if isinstance(block, Section)),
        len(document.blocks),
    )
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            document=document,
            intro=document.blocks[:first],
            sections=_with_anchors(document.blocks[first:]),
            svgs=figures,
            words=labels(document.language),
        )
    )


@cache
def _environment() -> jinja2.Environment:
    environment = template_environment("toolkit.report")
    environment.filters["inline"] = _inline
    environment.filters["words_of_code"] = _words_of_code
    environment.filters["kind"] = lambda block: type(block).__name__
    environment.filters["attributes_of_text"] = _attributes_of_text
    environment.globals.update(
        inline_svg=lambda svg, figure: Markup(inline_svg(svg, figure.name, visible(figure.alt))),
        as_cell=as_cell,
        grouped=_grouped,
        brief=lambda table: len(table.rows) <= _BRIEF,
        column_kinds=_column_kinds,
        name_classes=_name_classes,
        heading_classes=_heading_classes,
        shade=_shade,
        thumbnail_size=_thumbnail_size,
        data_uri=_data_uri,
    )
    return environment


def _inline(text: Text) -> Markup:
    """A text with its links as HTML."""
    link = Markup('<a href="{}" rel="noopener">{}</a>')
    return Markup("").join(
        link.format(visible(part.href), visible(part.text))
        if isinstance(part, Link)
        else escape(visible(part))
        for part in parts(text)
    )


def _words_of_code(text: str) -> Markup:
    """Code in which every word that a line might break in the middle of is an element."""
    whole = Markup("<span>{}</span>")
    return Markup("").join(
        whole.format(word) if re.search(r"[^\w\s]", word) else escape(word)
        for word in re.split(r"(\s+)", visible(text).strip("\n"))
    )


def _attributes_of_text(text: Text, lang: str | None = None) -> Markup:
    """` lang` and ` dir` of an element whose text may be in another language than the report."""
    words = plain(text)
    if lang is None and is_chinese(words):
        lang = "zh"
    attributes = Markup(' lang="{}"').format(lang) if lang else Markup("")
    return attributes + Markup(' dir="auto"') if has_right_to_left(words) else attributes


def _with_anchors(blocks: Sequence[Block]) -> list[tuple[str | None, Block]]:
    """The blocks, each section with an id made of its title; no two are the same."""
    taken: set[str] = set()
    named: list[tuple[str | None, Block]] = []
    for block in blocks:
        anchor = None
        if isinstance(block, Section):
            base = re.sub(r"[\W_]+", "-", visible(block.title).lower()).strip("-") or "section"
            anchor, number = base, 1
            while anchor in taken:
                number += 1
                anchor = f"{base}-{number}"
            taken.add(anchor)
        named.append((anchor, block))
    return named


def _grouped(blocks: Sequence[Block]) -> list[list[Block]]:
    """Pictures that follow each other together, every other block by itself."""
    groups: list[list[Block]] = []
    for block in blocks:
        if isinstance(block, Figure) and groups and isinstance(groups[-1][0], Figure):
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def _column_kinds(table: Table) -> list[str]:
    """How each column is laid out: "number", "short" (one line) or "long" (broken into lines)."""
    numeric = set(table.numeric or ())
    kinds = []
    for column in range(len(table.header)):
        cells = [as_cell(row[column]) for row in table.rows]
        if column in numeric:
            kinds.append("number")
        else:
            kinds.append("short" if max(map(_width, cells), default=0) <= _SHORT else "long")
    return kinds


def _name_classes(table: Table, cell: Cell) -> list[str]:
    """Classes of a cell in the first column: "one-line", or "words" if it breaks between words.

    The latter holds for the whole column, as its widest word decides how narrow it can be.
    """
    if _width(cell) <= _SHORT_NAME:
        return ["one-line"]
    names = [plain(as_cell(row[0]).text) for row in table.rows]
    words = [word for name in names for word in name.split() if not is_chinese(word)]
    return ["words"] if max(map(display_width, words), default=0) <= _LONG_WORD else []


def _heading_classes(cell: Cell) -> list[str]:
    return ["wordy"] if _width(cell) > _LONG_HEADING else []


def _width(cell: Cell) -> int:
    return max(display_width(plain(cell.text)), display_width(cell.detail or ""))


def _thumbnail_size(thumbnail: Thumbnail) -> tuple[int, int]:
    """Width and height on the page: small images whole times as large, so that one sees them."""
    width, height = thumbnail.size
    times = max(1, _THUMBNAIL // max(width, height, 1))
    return width * times, height * times


def _data_uri(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _shade(share: float) -> str:
    """The ground of a cell, from white (0) to the darkest (1)."""
    return "#" + "".join(f"{round(255 - share * (255 - part)):02x}" for part in _DARKEST)
