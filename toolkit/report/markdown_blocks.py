"""A report's blocks as GitHub-flavoured Markdown, with its pictures beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolkit.report.blocks import (
    Block,
    Bullets,
    Cell,
    Code,
    Details,
    Document,
    Figure,
    Link,
    Paragraph,
    Quote,
    Section,
    Table,
    Text,
    Thumbnail,
    as_cell,
    parts,
)
from toolkit.report.labels import Labels, labels
from toolkit.report.plain_text import one_line, visible

_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~$])")
# What begins a list or is a rule; numbers such as -1.2 are neither.
_LINE_START = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=[-+](?:\s|$)|-[- ]*$|=+$))")
# Numbers in brackets are no link where nothing that makes one follows: "[86.5, 89.3]" stays.
_INTERVAL = re.compile(
    r"\\\[([-+\u2212\d.,% ]*\d[-+\u2212\d.,% ]*(?:to [-+\u2212\d.,% ]+)?)\\\](?![(\[:])"
)
_DEEPEST_HEADING = 6


def render_markdown(document: Document) -> str:
    """The report as Markdown; a figure is a reference to `<name>.svg` in the same folder."""
    words = labels(document.language)
    pieces = [f"# {escape(document.title)}"]
    if document.subtitle is not None:
        pieces.append(_inline(document.subtitle))
    pieces += _blocks(document.blocks, level=1, words=words)
    if document.footer is not None:
        pieces += ["---", _inline(document.footer)]
    return "\n\n".join(filter(None, pieces)) + "\n"


def escape(text: str) -> str:
    """Text that Markdown shows as it is: no emphasis, table cell, tag or line break comes of it."""
    line = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = _INTERVAL.sub(r"[\1]", _SPECIAL.sub(r"\\\1", line))
    return _LINE_START.sub(r"\1\\", line)


def _blocks(blocks: Sequence[Block], level: int, words: Labels) -> list[str]:
    """The pieces of a list of blocks; `level` is that of the heading they stand below."""
    return [piece for block in blocks for piece in _block(block, level, words)]


def _block(block: Block, level: int, words: Labels) -> list[str]:
    match block:
        case Section():
            heading = "#" * block.level + " " + escape(block.title)
            return [heading, *_blocks(block.blocks, block.level, words)]
        case Details():
            below = min(level + 1, _DEEPEST_HEADING)
            return [f"{'#' * below} {escape(block.summary)}", *_blocks(block.blocks, below, words)]
        case Paragraph():
            return [_paragraph(block, words)]
        case Bullets():
            return ["\n".join(f"- {_inline(item)}" for item in block.items)]
        case Table():
            return [_around(block.caption, "*"), _table(block)]
        case Figure():
            picture = f"![{escape(block.alt)}]({block.name}.svg)"
            return [picture, _around(block.caption, "*")]
        case Code():
            return [_code(block.text)]
        case Quote():
            lines = visible(block.text).strip().split("\n")
            return ["\\\n".join(f"> {escape(line)}" for line in lines if line.strip())]
        case Thumbnail():
            return [f"> {escape(block.label)}"]


def _paragraph(paragraph: Paragraph, words: Labels) -> str:
    match paragraph.tone:
        case "lead":
            return _around(paragraph.text, "**")
        case "caption":
            return _around(paragraph.text, "*")
        case "note":
            return f"> **{words.note}** {_inline(paragraph.text)}"
        case "warning":
            return f"> **{words.warning}** {_inline(paragraph.text)}"
    return _inline(paragraph.text)


def _table(table: Table) -> str:
    numeric = set(table.numeric or ())
    rules = ["--:" if column in numeric else "---" for column in range(len(table.header))]
    rows = [[_cell(as_cell(cell)) for cell in row] for row in (table.header, *table.rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (rows[0], rules, *rows[1:]))


def _cell(cell: Cell) -> str:
    text = _around(cell.text, "**") if cell.strong else _inline(cell.text)
    detail = escape(cell.detail or "")
    if detail and not detail.startswith(("[", "(", "（", "±")):
        detail = f"({detail})"
    return " ".join(filter(None, [text, detail]))


def _code(text: str) -> str:
    r"""A fenced block; the fence is longer than every run of "~" in the text."""
    lines = visible(text).strip("\n")
    longest = max((len(run) for run in re.findall("~+", lines)), default=0)
    fence = "~" * max(3, longest + 1)
    return f"{fence}\n{lines}\n{fence}"


def _around(text: Text | None, mark: str) -> str:
    """Emphasis around a text; nothing around no text, where the marks would be a rule."""
    inner = _inline(text) if text is not None else ""
    return f"{mark}{inner}{mark}" if inner else ""


def _inline(text: Text) -> str:
    """A text with its links; the spaces between parts are kept, those at the ends are not."""
    written = ""
    for part in parts(text):
        if isinstance(part, Link):
            written += f"[{escape(part.text)}](<{_href(part.href)}>)"
        else:
            lead, tail = (" " if part[:1].isspace() else ""), (" " if part[-1:].isspace() else "")
            written += f"{lead}{escape(part)}{tail}"
    return written.strip()


def _href(href: str) -> str:
    """An address between "<" and ">", where only these two, a backslash and line ends matter."""
    return one_line(href).replace("\\", "%5C").replace("<", "%3C").replace(">", "%3E")
