"""A report as a tree of blocks: what is said, apart from how Markdown or HTML lay it out.

All texts are plain: the renderers escape them, so that a text somebody else wrote shows as it is.
The one thing that is more than text is a `Link`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from matplotlib.figure import Figure as Picture

Tone = Literal["plain", "lead", "caption", "note", "warning"]
Align = Literal["left", "center", "right"]

_TONES = ("plain", "lead", "caption", "note", "warning")
_SAFE_HREF = re.compile(r"(https?://|mailto:|#|\./|\.\./|[\w-]+(?:[./?#]|\Z))", re.IGNORECASE)
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_PNG = b"\x89PNG\r\n\x1a\n"
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True)
class Link:
    """A text that leads somewhere: a web page, a place in this report, or a file beside it."""

    text: str
    href: str

    def __post_init__(self) -> None:
        if not _SAFE_HREF.match(self.href):
            raise ValueError(
                f"a link goes to http(s), mailto, '#…' or a relative path, not {self.href!r}"
            )


# A text, or several parts of which some are links; parts are joined without a space.
Text: TypeAlias = "str | Link | tuple[str | Link, ...]"


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it; `level` is that of the heading (the title is 1)."""

    title: str
    blocks: Sequence[Block]
    level: int = 2

    def __post_init__(self) -> None:
        if not 2 <= self.level <= 6:
            raise ValueError(f"a section's level is 2 to 6, not {self.level}")


@dataclass(frozen=True)
class Paragraph:
    """Running text. Notes and warnings are introduced by that word, so leave it out of the text.

    "lead" is the one sentence a reader must see, "caption" what explains a table or list above.
    """

    text: Text
    tone: Tone = "plain"

    def __post_init__(self) -> None:
        if self.tone not in _TONES:
            raise ValueError(f"a paragraph's tone is one of {', '.join(_TONES)}, not {self.tone!r}")


@dataclass(frozen=True)
class Bullets:
    """A list without order, one text an item."""

    items: Sequence[Text]


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    `detail` is a second, smaller line, such as an interval. `align` overrides the column's.
    `shade` (0 to 1) colours the ground of a heat table; say the number in words, too: Markdown and
    black-and-white print show the text alone.
    """

    text: Text
    strong: bool = False
    align: Align | None = None
    shade: float | None = None
    detail: str | None = None

    def __post_init__(self) -> None:
        if self.shade is not None and not 0 <= self.shade <= 1:
            raise ValueError(f"a cell's shade is between 0 and 1, not {self.shade}")


@dataclass(frozen=True)
class Table:
    """Rows below a header, all of the header's length.

    `numeric` names the columns (from 0) that are aligned right and never broken into lines.
    With `row_header` the first column names the rows; it stays in view when a narrow page scrolls
    the table. `caption` stands above the table; for notes below it take Paragraph(tone="caption").
    """

    header: Sequence[Cell | str]
    rows: Sequence[Sequence[Cell | str]]
    numeric: Sequence[int] | None = None
    caption: str | None = None
    row_header: bool = True

    def __post_init__(self) -> None:
        columns = len(self.header)
        for place, row in enumerate(self.rows):
            if len(row) != columns:
                raise ValueError(
                    f"row {place} of the table has {len(row)} cells, its header {columns}"
                )
        if wrong := [column for column in self.numeric or () if not 0 <= column < columns]:
            raise ValueError(f"numeric names columns {wrong} of a table with {columns}")


@dataclass(frozen=True)
class DrawnPicture:
    """A picture of an earlier report, as the SVG document that stood in its file."""

    svg: str


@dataclass(frozen=True)
class Figure:
    """A picture, drawn when the report is written.

    `name` is its file's without suffix; `alt` says what the picture shows to those who don't see
    it, `caption` how to read it.
    """

    name: str
    draw: Callable[[], Picture | DrawnPicture]
    alt: str
    caption: str

    def __post_init__(self) -> None:
        if not _FILE_NAME.fullmatch(self.name):
            raise ValueError(
                f"a figure's name is a file's: letters, digits, '-' and '_', not {self.name!r}"
            )


@dataclass(frozen=True)
class Code:
    """Commands or settings, line by line as given."""

    text: str


@dataclass(frozen=True)
class Quote:
    """A text of the data, its lines kept; `lang` (such as "zh") where its language is known."""

    text: str
    lang: str | None = None

    def __post_init__(self) -> None:
        _check_language(self.lang)


@dataclass(frozen=True)
class Thumbnail:
    """A small image of the data, as the bytes of a PNG file; `label` says where it is from.

    HTML holds the image itself, Markdown the label alone.
    """

    png: bytes
    label: str

    def __post_init__(self) -> None:
        if not self.png.startswith(_PNG):
            raise ValueError("a thumbnail is a PNG file")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, from the head of the file."""
        return int.from_bytes(self.png[16:20], "big"), int.from_bytes(self.png[20:24], "big")


@dataclass(frozen=True)
class Details:
    """What only some readers want: folded away in HTML, below a subheading in Markdown."""

    summary: str
    blocks: Sequence[Block]


Block: TypeAlias = (
    Section | Paragraph | Bullets | Table | Figure | Code | Quote | Thumbnail | Details
)


@dataclass(frozen=True)
class Document:
    """A whole report. `language` is that of its sentences, such as "en" or "zh-CN"."""

    title: str
    language: str = "en"
    blocks: Sequence[Block] = ()
    subtitle: Text | None = None
    footer: Text | None = None

    def __post_init__(self) -> None:
        _check_language(self.language)
        names = [figure.name for figure in figures_of(self.blocks)]
        # File systems that ignore case would write one picture over the other.
        lowered = [name.lower() for name in names]
        if twice := sorted({name for name in names if lowered.count(name.lower()) > 1}):
            raise ValueError(f"several figures are called {', '.join(twice)}")


def figures_of(blocks: Sequence[Block]) -> Iterator[Figure]:
    """Every figure of a tree, in reading order."""
    for block in blocks:
        if isinstance(block, Figure):
            yield block
        elif isinstance(block, Section | Details):
            yield from figures_of(block.blocks)


def parts(text: Text) -> tuple[str | Link, ...]:
    """A text as its parts, also where it is a single one."""
    return text if isinstance(text, tuple) else (text,)


def plain(text: Text) -> str:
    """A text without its links."""
    return "".join(part.text if isinstance(part, Link) else part for part in parts(text))


def as_cell(cell: Cell | str) -> Cell:
    """A table's cell, also where it was given as a mere text."""
    return cell if isinstance(cell, Cell) else Cell(cell)


def _check_language(language: str | None) -> None:
    if language is not None and not _LANGUAGE.fullmatch(language):
        raise ValueError(f"a language is a tag such as 'en' or 'zh-CN', not {language!r}")
