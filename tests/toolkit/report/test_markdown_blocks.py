"""Markdown of a report, read back by an independent reader of Markdown (markdown-it)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from matplotlib.figure import Figure as Picture

from toolkit.report.blocks import (
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
)
from toolkit.report.markdown_blocks import escape, render_markdown

# Texts as people write them, with what Markdown and HTML take for their own more often than not.
SPECIAL = "\\`*_{}[]()#+-.!|~$<>&\"':=^1aé中\u202e😅 \n"
TEXTS = st.text(
    st.one_of(st.sampled_from(SPECIAL), st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])),
    max_size=30,
)


@pytest.fixture(scope="session")
def read(read_page: Any) -> Any:
    """Markdown -> the elements that a reader of CommonMark with GitHub's tables shows."""
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return lambda text: read_page(markdown.render(text))


def _document(*blocks: object) -> str:
    return render_markdown(Document("Title", blocks=blocks))  # type: ignore[arg-type]


@given(TEXTS)
@example("- a")
@example("1. a")
@example("---")
@example("[a]: b")
@example("[1](b) [1]: c [2][3] [x]")
@example("\\|")
@example("**a** __b__ ~~c~~ <b>d</b> &amp; `e` $f$ ![g](h) #i https://j.k")
def test_texts_are_shown_as_they_are(read: Any, text: str) -> None:
    said = " ".join(text.split())
    markdown = render_markdown(
        Document(
            text,
            blocks=[
                Paragraph(text),
                Bullets([text, "end"]),
                Section(text, [Paragraph(("a ", Link(text, "b.md"), " c"))]),
                Table([text, "b"], [[text, Cell("x", detail=text)], ["", text]], caption="c"),
                Figure("f", Picture, alt=text, caption="caption"),
            ],
        )
    )
    found = read(markdown)
    assert found.texts("h1", "h2") == [said, said]
    assert found.texts("li") == [said, "end"]
    assert found.texts("th") == [said, "b"]
    assert [values["alt"] for tag, values, _ in found.elements if tag == "img"] == [said]
    assert found.texts("a") == [said]
    cells = found.texts("td")
    assert cells[0] == cells[3] == said
    assert said in cells[1]
    paragraphs = found.texts("p")
    assert paragraphs == [*([said] if said else []), " ".join(f"a {said} c".split()), "c", "",
                          "caption"]  # fmt: skip
    assert {tag for tag, _, _ in found.elements} <= {
        *(
            "h1",
            "h2",
            "p",
            "ul",
            "li",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "img",
            "a",
            "em",
        )
    }


@given(TEXTS.filter(str.strip))
def test_emphasis_holds_the_whole_text(read: Any, text: str) -> None:
    said = " ".join(text.split())
    found = read(
        _document(
            Paragraph(text, tone="lead"),
            Table(["a"], [[Cell(text, strong=True)]]),
            Paragraph(text, tone="caption"),
        )
    )
    assert found.texts("strong") == [said, said]
    assert found.texts("em") == [said]


@given(st.text(st.sampled_from("`~ab \n"), max_size=40))
def test_code_is_shown_as_it_is(read: Any, text: str) -> None:
    code = text.strip("\n")
    found = read(_document(Code(text), Paragraph("after")))
    assert [part.strip("\n") for tag, _, part in found.elements if tag == "code"] == [code]
    assert found.texts("p") == ["after"]


@given(TEXTS.filter(str.strip))
def test_a_quote_keeps_its_lines(read: Any, text: str) -> None:
    lines = [" ".join(line.split()) for line in text.split("\n") if line.strip()]
    found = read(_document(Quote(text), Paragraph("after")))
    assert found.texts("blockquote") == [" ".join(lines)]
    assert sum(tag == "br" for tag, _, _ in found.elements) == len(lines) - 1
    assert found.texts("p")[-1] == "after"


@given(TEXTS)
def test_no_dollar_begins_a_formula(text: str) -> None:
    """GitHub reads $…$ as a formula, which markdown-it does not."""
    for before in re.findall(r"(\\*)\$", escape(text)):
        assert len(before) % 2 == 1


def test_intervals_and_numbers_read_well_as_source() -> None:
    assert escape("87.9% [86.5, 89.3]") == "87.9% [86.5, 89.3]"
    assert escape("2.1 [−0.6 to 3.5]") == "2.1 [−0.6 to 3.5]"
    assert escape("-1.2") == "-1.2"
    assert escape("0.5") == "0.5"
    assert escape("[a, b]") == r"\[a, b\]"


def test_control_characters_are_signs() -> None:
    assert escape("a\x1b[0m\x00") == r"a␛\[0m␀"
    assert "a␀b" in _document(Code("a\x00b"))


def test_tables() -> None:
    table = Table(
        ["run", "accuracy", "parameters", "note"],
        [
            [Cell("A", strong=True), Cell("87.9%", detail="[86.5, 89.3]", strong=True),
             Cell("117.7 M", detail="10.8 M trained"), "x|y"],
            ["B", Cell("85%", shade=0.5), "1", ""],
        ],
        numeric=[1, 2],
        caption="All runs",
    )  # fmt: skip
    assert _document(table) == (
        "# Title\n\n*All runs*\n\n"
        "| run | accuracy | parameters | note |\n"
        "| --- | --: | --: | --- |\n"
        "| **A** | **87.9%** [86.5, 89.3] | 117.7 M (10.8 M trained) | x\\|y |\n"
        "| B | 85% | 1 |  |\n"
    )


def test_every_other_block() -> None:
    blocks = [
        Paragraph("Best.", tone="lead"),
        Section(
            "Results",
            [
                Paragraph("different rules", tone="note"),
                Paragraph("unfair", tone="warning"),
                Figure("accuracy", Picture, alt="A leads", caption="Accuracy."),
                Details("More", [Code("a ~~~ b"), Quote("x\ny")]),
                Section("Deeper", [Bullets(["a", ("b ", Link("c", "https://d.e/f(g)"))])], level=6),
            ],
        ),
        Details("Last", [Paragraph("z")]),
    ]
    document = Document("T", subtitle="sub", footer="foot", blocks=blocks)
    assert render_markdown(document) == (
        "# T\n\nsub\n\n**Best.**\n\n## Results\n\n> **Note:** different rules\n\n"
        "> **Warning:** unfair\n\n![A leads](accuracy.svg)\n\n*Accuracy.*\n\n### More\n\n"
        "~~~~\na ~~~ b\n~~~~\n\n> x\\\n> y\n\n###### Deeper\n\n- a\n- b [c](<https://d.e/f(g)>)\n\n"
        "## Last\n\nz\n\n---\n\nfoot\n"
    )


@pytest.mark.parametrize(
    ("language", "label"), [("en", "Note:"), ("zh-CN", "注意："), ("de", "Note:")]
)
def test_the_layouts_own_words_follow_the_language(language: str, label: str) -> None:
    document = Document("T", language=language, blocks=[Paragraph("x", tone="note")])
    assert f"> **{label}** x" in render_markdown(document)
