"""Tables of a card: cells show the text as it is, whatever stands in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolkit.report.markdown_blocks import escape


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown of plain texts."""
    lines = [list(map(escape, header)), ["---"] * len(header)]
    lines += [list(map(escape, row)) for row in rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
