"""The HTML page: what it says, what it leaves out, what it is marked up with."""

from __future__ import annotations

import base64
import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure as Picture
from PIL import Image

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
    Text,
    Thumbnail,
    figures_of,
)
from toolkit.report.html import render_html

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="72pt" height="36pt">'
    '<defs><path id="m"/></defs><use href="#m"/></svg>'
)
SPECIAL = "<>&\"'{}%#\\/-= aé中\u202e😅\n"
TEXTS = st.text(
    st.one_of(st.sampled_from(SPECIAL), st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])),
    max_size=30,
)


def _page(*blocks: Any, **others: Any) -> str:
    document = Document("Title", blocks=blocks, **others)
    return render_html(document, {figure.name: SVG for figure in figures_of(blocks)})


@given(TEXTS)
def test_texts_are_shown_as_they_are(read_page: Any, text: str) -> None:
    said = " ".join(text.split())
    blocks = [
        Section(
            text,
            [
                Paragraph(text),
                Bullets([text]),
                Table([text], [[Cell(text, detail=text)]], row_header=False),
                Figure("f", Picture, alt=text, caption=text),
                Code(text),
                Quote(text),
                Details(text, [Paragraph(("a ", Link(text, "b.md"), " c"))]),
            ],
        ),
        Section(text, []),
    ]
    found = read_page(
        render_html(
            Document(text, subtitle=text, footer=text, blocks=blocks), dict.fromkeys("f", SVG)
        )
    )
    assert found.texts("title", "h1", "h2", "th", "pre", "blockquote") == [said] * 7
    assert found.texts("li") == [said] * 3  # two of the contents
    assert found.texts("td") == [" ".join(f"{text} {text}".split())]
    assert found.texts("summary") == [said]
    assert found.texts("figcaption") == ([said] if text else [])
    assert found.texts("p") == [said, "Contents", said, " ".join(f"a {said} c".split()), said]
    images = [values["aria-label"] for tag, values, _ in found.elements if tag == "svg"]
    assert [" ".join(label.split()) for label in images] == [said]


@given(st.text(st.sampled_from("ab- =\t\n/.<"), max_size=40))
def test_code_and_quotes_keep_their_lines(read_page: Any, text: str) -> None:
    found = read_page(_page(Code(text), Quote(text)))
    assert [part for tag, _, part in found.elements if tag == "code"] == [text.strip("\n")]
    assert [part for tag, _, part in found.elements if tag == "blockquote"] == [text.strip()]


def test_control_characters_are_signs(read_page: Any) -> None:
    nasty = "a\x00b\x1b\ud800"
    page = _page(
        Paragraph(nasty),
        Code(nasty),
        Quote(nasty),
        Section(nasty, [Table([nasty], [[nasty]])]),
        Figure("f", Picture, alt=nasty, caption=nasty),
    )
    page.encode("utf-8")
    assert read_page(page).texts("p", "pre", "blockquote", "h2", "th", "figcaption") == [
        "a␀b␛\ufffd"
    ] * 7  # fmt: skip


def test_the_page_is_whole_and_asks_for_nothing(document: Document, read_page: Any) -> None:
    page = render_html(document, {"accuracy": SVG, "curve": SVG})
    found = read_page(page)
    tags = {tag for tag, _, _ in found.elements}
    assert page.startswith("<!DOCTYPE html>\n")
    assert not tags & {"script", "link", "img", "iframe", "object", "base", "form"}
    for tag, values, _ in found.elements:
        assert "src" not in values
        assert not any(name.startswith("on") for name in values)
        if "href" in values and tag != "a":
            assert values["href"].startswith("#")
    css = "".join(text for tag, _, text in found.elements if tag == "style")
    assert "@import" not in css
    assert not re.search(r"url\((?!#)", css)
    assert "http" not in css
    metas = [values for tag, values, _ in found.elements if tag == "meta"]
    assert {"charset": "utf-8"} in metas
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in metas
    assert found.elements[0][1] == {"lang": "en"}


def test_ids_are_unique_and_every_reference_has_its_target(
    document: Document, read_page: Any
) -> None:
    elements = read_page(render_html(document, {"accuracy": SVG, "curve": SVG})).elements
    ids = [values["id"] for _, values, _ in elements if "id" in values]
    assert len(set(ids)) == len(ids)
    targets = {values["href"][1:] for _, values, _ in elements if values.get("href", "")[:1] == "#"}
    assert targets == set(ids)
    assert {"accuracy:m", "curve:m", "results"} <= targets


def test_contents_lead_to_every_section(read_page: Any) -> None:
    titles = ["Results", "Results", "结果：一", "!?", "accuracy:m"]
    found = read_page(_page(*[Section(title, []) for title in titles]))
    links = [(values["href"], text) for tag, values, text in found.elements if tag == "a"]
    anchors = ["results", "results-2", "结果-一", "section", "accuracy-m"]
    assert links == [(f"#{a}", t) for a, t in zip(anchors, titles, strict=True)]
    assert [v.get("id") for tag, v, _ in found.elements if tag == "section"] == anchors
    assert "<nav" not in _page(Section("alone", []))


def test_tables_are_marked_up_for_those_who_hear_them(read_page: Any) -> None:
    table = Table(
        ["run", "accuracy", "note"],
        [
            [Cell("A", strong=True), Cell("87.9%", detail="[86.5, 89.3]", strong=True), "x" * 40],
            ["B", Cell("85%", align="left", shade=1), "酒店位置很好"],
        ],
        numeric=[1],
        caption="All runs",
    )
    elements = read_page(_page(Section("Results", [table]))).elements
    assert [v["scope"] for tag, v, _ in elements if tag == "th"] == [
        "col",
        "col",
        "col",
        "row",
        "row",
    ]
    cells = [values for tag, values, _ in elements if tag in ("th", "td")]
    assert [values["class"] for values in cells] == [
        *("short first", "number", "long"),
        *("short one-line first", "number", "long"),
        *("short one-line first", "number left shaded", "long"),
    ]  # fmt: skip
    assert cells[-2]["style"] == "background: #9ecaeb"
    assert cells[-1]["lang"] == "zh"
    assert [text for tag, _, text in elements if tag == "strong"] == ["A", "87.9%"]
    assert [text for tag, _, text in elements if tag == "span"] == ["[86.5, 89.3]"]
    region = next(values for _, values, _ in elements if values.get("role") == "region")
    assert region["aria-label"] == "All runs"
    assert region["tabindex"] == "0"

    uncaptioned = Table(["a"], [["b"]], row_header=False)
    elements = read_page(_page(Section("Results", [uncaptioned]))).elements
    region = next(values for _, values, _ in elements if values.get("role") == "region")
    assert region["aria-label"] == "Table: Results"
    assert [values["class"] for tag, values, _ in elements if tag == "td"] == ["short"]


def test_notes_say_in_words_what_they_are(read_page: Any) -> None:
    notes = [Paragraph("x", tone="note"), Paragraph("y", tone="warning")]
    assert read_page(_page(*notes)).texts("p") == ["Note: x", "Warning: y"]
    assert read_page(_page(*notes, language="zh-CN")).texts("p") == ["注意： x", "警告： y"]
    assert '<html lang="zh-CN">' in _page(language="zh-CN")


@pytest.mark.parametrize(
    ("quote", "attributes"),
    [
        (Quote("酒店很好"), {"lang": "zh"}),
        (Quote("hotel"), {}),
        (Quote("très bien", lang="fr"), {"lang": "fr"}),
        (Quote("مرحبا"), {"dir": "auto"}),
    ],
)
def test_quotes_are_marked_with_language_and_direction(
    read_page: Any, quote: Quote, attributes: dict[str, str]
) -> None:
    elements = read_page(_page(quote)).elements
    assert [values for tag, values, _ in elements if tag == "blockquote"] == [attributes]


def test_parts_with_links(read_page: Any) -> None:
    text: Text = ("see ", Link("a & b", "https://example.org/?a=1&b=2"), ".")
    elements = read_page(_page(Paragraph(text), Bullets([text]))).elements
    links = [(values["href"], said) for tag, values, said in elements if tag == "a"]
    assert links == [("https://example.org/?a=1&b=2", "a & b")] * 2
    assert [said for tag, _, said in elements if tag == "p"] == ["see a & b."]


def test_a_missing_picture_is_named() -> None:
    figure = Figure("accuracy", Picture, alt="", caption="")
    with pytest.raises(ValueError, match="no picture was given for the figures accuracy"):
        render_html(Document("T", blocks=[figure]), {})


def _contrast(first: str, second: str) -> float:
    """WCAG 2.2, "contrast ratio" and "relative luminance", of two colours as #rrggbb."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_contrast_of_every_text_is_that_of_wcag_aa() -> None:
    assert _contrast("#ffffff", "#000000") == pytest.approx(21)
    assert _contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # just below
    page = _page(Table(["a"], [[Cell("1", shade=1)]]))
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", page))
    darkest = re.findall(r'style="background: (#[0-9a-f]{6})"', page)
    pairs = [("ink", "paper"), ("ink", "soft"), ("ink", "soft-accent"), ("ink", "soft-warning")]
    pairs += [("muted", "paper"), ("accent", "paper"), ("accent", "soft-accent")]
    pairs += [("warning", "soft-warning")]
    for text, ground in pairs:
        assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    assert _contrast(colours["ink"], darkest[0]) >= 4.5


def _png(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(
    ("size", "shown"), [((8, 8), (96, 96)), ((32, 20), (96, 60)), ((80, 53), (80, 53))]
)
def test_a_small_image_of_the_data_is_in_the_page(
    size: tuple[int, int], shown: tuple[int, int]
) -> None:
    png = _png(*size)
    page = _page(Thumbnail(png, "<a>/1.png"))
    [(data, width, height, alt)] = re.findall(
        r'<img src="data:image/png;base64,([^"]*)" width="(\d+)" height="(\d+)" alt="([^"]*)">',
        page,
    )
    assert base64.b64decode(data) == png
    assert (int(width), int(height)) == shown
    assert alt == "&lt;a&gt;/1.png"


def test_only_png_files_are_thumbnails() -> None:
    with pytest.raises(ValueError, match="a thumbnail is a PNG file"):
        Thumbnail(b"GIF89a", "a.gif")


def test_pictures_in_a_row_stand_together() -> None:
    figures = [Figure(name, Picture, alt=name, caption="") for name in "abcd"]
    page = _page(figures[0], figures[1], Paragraph("between"), figures[2], Quote("q"), figures[3])
    body = page.split("<body>")[1]
    assert body.count('<div class="pictures">') == 1
    together = body.split('<div class="pictures">')[1].split("between")[0]
    assert together.count('<figure class="picture">') == 2
