"""Blocks of a report as JSON values, and back."""

from __future__ import annotations

import json

import pytest

from toolkit.report.block_values import from_values, to_values
from toolkit.report.blocks import (
    Block,
    Bullets,
    Cell,
    Code,
    Details,
    Document,
    DrawnPicture,
    Figure,
    Link,
    Paragraph,
    Quote,
    Section,
    Table,
    Thumbnail,
)
from toolkit.report.html import render_html
from toolkit.report.markdown_blocks import render_markdown

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8) + (2).to_bytes(4, "big") * 2
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="10pt" height="10pt"/>'


def picture(name: str) -> DrawnPicture:
    return DrawnPicture(f"{name}.svg")


def every_block() -> list[Block]:
    cell = Cell("a", strong=True, align="center", shade=0.5, detail="b")
    return [
        Paragraph(("see ", Link("this", "#place")), "note"),
        Section("part", [Bullets(["one", ("two ", Link("x", "x.md"))])], level=3),
        Table(["k", cell], [["v", cell]], numeric=range(1, 2), caption="c", row_header=False),
        Details("more", [Code("run\n it"), Quote("好", "zh"), Thumbnail(PNG, "image")]),
        Figure("curve", lambda: picture("curve"), "alt", "caption"),
    ]


def test_what_comes_back_reads_the_same() -> None:
    blocks = every_block()
    values = json.loads(json.dumps(to_values(blocks)))
    again = from_values(values, picture)
    for render in (render_markdown, lambda document: render_html(document, {"curve": SVG})):
        assert render(Document("t", blocks=again)) == render(Document("t", blocks=blocks))
    figure = again[-1]
    assert isinstance(figure, Figure)
    assert figure.draw() == DrawnPicture("curve.svg")


@pytest.mark.parametrize("values", [[{"block": "Script"}], [{"text": "x"}], [{"block": "Code"}]])
def test_other_values_are_refused(values: list[object]) -> None:
    with pytest.raises(ValueError, match="no blocks of a report"):
        from_values(values, picture)
