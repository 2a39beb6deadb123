"""The HTML page in a real browser: on a phone, on A4, and with Chinese characters."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from toolkit import plots
from toolkit.report.blocks import (
    Block,
    Cell,
    Code,
    Document,
    Figure,
    Paragraph,
    Section,
    Table,
    Thumbnail,
)
from toolkit.report.files import write_document


def _has_chinese_font() -> bool:
    """What fontconfig says, where it is the one that the browser asks (Linux)."""
    if (program := shutil.which("fc-list")) is None:
        return True
    found = subprocess.run([program, ":lang=zh"], capture_output=True, check=False)
    return bool(found.stdout.strip())


A4_TEXT = 680  # CSS pixels of 180 mm, what the margins leave of A4's width


@pytest.fixture(scope="module")
def page(document: Document, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_document(document, folder, {})
    return folder / "report.html"


@pytest.mark.parametrize("width", [320, 400, 1200])
def test_the_page_is_never_wider_than_the_screen(browser: Any, page: Path, width: int) -> None:
    browser.open(page, width)
    browser.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")

    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    # `overflow: hidden` would pass the test above, too: nothing is cut off.
    cut_off = browser.evaluate(
        """[...document.querySelectorAll(
            'p, li, h1, h2, pre, code span, blockquote, figcaption, summary, nav a'
        )].filter(part => part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0)
          .map(part => part.outerHTML)"""
    )
    assert cut_off == []


def test_a_wide_table_scrolls_in_its_box_and_keeps_the_names_in_view(
    browser: Any, page: Path
) -> None:
    browser.open(page, 400)
    found = browser.evaluate(
        """(() => {
            const box = document.querySelector('.table .wide');
            box.scrollIntoView();
            box.scrollLeft = 300;
            const inside = box.getBoundingClientRect();
            const place = cell => box.querySelector(cell).getBoundingClientRect();
            const name = place('tbody th'), value = place('tbody td');
            const top = document.elementFromPoint(name.left + 5, name.top + 12);
            return {scrolled: box.scrollLeft, focusable: box.tabIndex, width: inside.width,
                    name: name.left - inside.left, name_width: name.width,
                    value: value.left - inside.left, on_top: top.tagName};
        })()"""
    )
    assert found["scrolled"] == 300
    assert found["focusable"] == 0
    assert found["name"] == pytest.approx(0, abs=1)
    assert found["value"] < 0
    # The name covers the numbers that pass below it, and leaves them more than half of the page.
    assert found["on_top"] == "TH"
    assert found["name_width"] < found["width"] / 2


def test_the_letters_of_a_picture_stay_readable_on_a_phone(browser: Any, page: Path) -> None:
    browser.open(page, 400)
    sizes = browser.evaluate(
        "[...document.querySelectorAll('svg text')].map("
        "text => { const {a, b, c, d} = text.getScreenCTM();"
        " return parseFloat(getComputedStyle(text).fontSize) * Math.sqrt(a * d - b * c); })"
    )
    assert sizes
    assert min(sizes) > 9.5


def test_a_command_is_broken_between_words_and_copied_whole(browser: Any, page: Path) -> None:
    browser.open(page, 400)
    browser.evaluate("getSelection().selectAllChildren(document.querySelector('pre'))")
    copied = browser.evaluate("getSelection().toString()")
    assert copied.startswith("accelerate launch recipes/bert_sentiment.py --preset=demo --train")
    assert "\n" not in copied

    lines_of_option = browser.evaluate(
        "[...document.querySelectorAll('pre span')].find("
        "word => word.textContent == '--train_size=13363').getClientRects().length"
    )
    assert lines_of_option == 1


def test_nothing_is_fetched(browser: Any, page: Path) -> None:
    browser.open(page, 1200)
    assert browser.requests == [page.as_uri()]


def test_a4_shows_all_without_scrolling(browser: Any, page: Path) -> None:
    browser.open(page, A4_TEXT, media="print")
    assert browser.evaluate("document.documentElement.scrollWidth") <= A4_TEXT
    assert browser.evaluate(
        "[...document.querySelectorAll('table, svg')]"
        f".every(part => part.getBoundingClientRect().right <= {A4_TEXT})"
    )
    assert not browser.evaluate("document.querySelector('details').open")
    assert browser.evaluate("document.querySelector('details p').checkVisibility()")
    assert browser.evaluate("document.querySelector('details p').getClientRects()[0].height") > 10
    assert not browser.evaluate("document.querySelector('nav').checkVisibility()")

    printed = browser.pdf()
    sizes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)\s*\]", printed)
    assert len(sizes) > 1
    for width, height in sizes:  # 210 mm x 297 mm in points
        assert float(width) == pytest.approx(595.3, abs=0.5)
        assert float(height) == pytest.approx(841.9, abs=0.5)


NAMES = [
    "Chinese BERT, frozen + logistic regression",
    "2–27",
    "97–592",
    "好" * 9 + "，" + "好" * 30,
]


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with a cost table of seven columns, as wide as such a table becomes."""
    folder = tmp_path_factory.mktemp("costs")
    value = Cell("117.7 M", detail="721.7 GFLOP to 752.0 GFLOP")
    header = ["method", *["LSTM from random weights of the framework"] * 7]
    wide, narrow = (
        Table(header, [[name, *[cell] * 7] for name in NAMES], numeric=range(1, 8))
        for cell in (value, "1")
    )
    sections = [Section("Costs", [wide]), Section("More", [narrow])]
    write_document(Document("Costs", blocks=sections), folder, {})
    return folder / "report.html"


# The lines of a name or heading: the text of every line box, found character by character.
LINES = """(cell => {
    const lines = [], text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT).nextNode();
    let last = null;
    for (let place = 0; place < text.length; place++) {
        const range = document.createRange();
        range.setStart(text, place); range.setEnd(text, place + 1);
        const box = range.getClientRects()[0];
        if (!box || !box.width) continue;
        if (last === null || box.top > last + 3) { lines.push(''); last = box.top; }
        lines[lines.length - 1] += text.data[place];
    }
    return lines;
})"""


@pytest.mark.parametrize(
    ("width", "media"), [(400, "screen"), (1100, "screen"), (A4_TEXT, "print")]
)
def test_names_of_rows_break_between_words_only(
    browser: Any, costs: Path, width: int, media: str
) -> None:
    browser.open(costs, width, media=media)
    rows = browser.evaluate(f"[...document.querySelectorAll('tbody th')].map({LINES})")
    english, *short, chinese = rows[: len(NAMES)]
    assert " ".join(" ".join(english).split()) == NAMES[0]  # parted at spaces alone
    assert short == [[NAMES[1]], [NAMES[2]]]
    assert len(chinese) > 1
    assert not any(line.startswith("，") for line in chinese)
    name = browser.evaluate("document.querySelector('tbody th').getBoundingClientRect().width")
    assert name >= 25 / 25.4 * 96 - 1  # 25 mm
    if media == "print":
        assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_long_headings_take_few_lines_on_a_phone(browser: Any, costs: Path) -> None:
    browser.open(costs, 400)
    headings = browser.evaluate(f"[...document.querySelectorAll('thead .number')].map({LINES})")
    assert headings
    assert max(map(len, headings)) <= 4


@pytest.mark.parametrize("width", [1100, 1360, 1920])
def test_tables_use_the_width_of_the_page(browser: Any, costs: Path, width: int) -> None:
    browser.open(costs, width)
    boxes = browser.evaluate(
        "[...document.querySelectorAll('.table .wide')].map(box => box.clientWidth)"
    )
    assert min(boxes) >= 1000
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.skipif(not _has_chinese_font(), reason="no Chinese font installed (fonts-noto-cjk)")
@pytest.mark.parametrize("place", ["p", "blockquote", "td", "svg text", "pre code"])
def test_chinese_characters_are_not_boxes(browser: Any, page: Path, place: str) -> None:
    """The box that stands for a missing character is the same for all of them."""
    browser.open(page, 1200)
    pictures = []
    for character in "中文":
        clip = browser.evaluate(
            f"""(() => {{
                const element = document.querySelector('{place}');
                element.textContent = '{character * 4}';
                const range = document.createRange();
                range.selectNodeContents(element);
                const box = range.getBoundingClientRect();
                return {{x: box.x + scrollX, y: box.y + scrollY, width: 40, height: box.height}};
            }})()"""
        )
        image = Image.open(io.BytesIO(browser.screenshot(clip))).convert("L")
        assert image.getextrema()[0] < 128  # something dark is written
        pictures.append(image.tobytes())
    assert pictures[0] != pictures[1]


def _curve() -> Any:
    return plots.learning_curve([plots.Series("BERT", [500, 1000], [0.8, 0.85])])


@pytest.fixture(scope="module")
def long_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What used to leave pages half empty: tables of some rows, pictures, a list of commands."""
    folder = tmp_path_factory.mktemp("long")
    table = Table(["method", "accuracy"], [[f"method {n}", "87.9%"] for n in range(8)])
    words = Paragraph("What explains a table or a picture. " * 6, tone="caption")
    curves: list[Block] = [
        Figure(f"curve_{n}", _curve, alt="It grows", caption="Curve.") for n in range(4)
    ]
    blocks: list[Block] = [
        *(Section(f"Part {n}", [table, words]) for n in range(5)),
        Section("Curves", curves),
        Section("Runs", [Paragraph("Its runs:"), Code("\n".join(f"# {n}" for n in range(90)))]),
        *(Section(f"More {n}", [table, words]) for n in range(5)),
    ]
    write_document(Document("Long", blocks=blocks), folder, {})
    return folder / "report.html"


@pytest.mark.skipif(shutil.which("pdftoppm") is None, reason="pdftoppm (poppler-utils) is missing")
def test_printed_pages_are_not_left_half_empty(
    browser: Any, long_report: Path, tmp_path: Path
) -> None:
    browser.open(long_report, A4_TEXT, media="print")
    (tmp_path / "a.pdf").write_bytes(browser.pdf())
    command = ["pdftoppm", "-r", "30", "-gray", "-png", "a.pdf", "page"]
    subprocess.run(command, check=True, cwd=tmp_path)
    pages = sorted(tmp_path.glob("page-*.png"))
    assert len(pages) > 3
    blank = []
    for page in pages[:-1]:  # the last one ends where the report ends
        with Image.open(page) as image:
            text = image.crop((0, 0, image.width, image.height * (297 - 18) // 297))
            last = text.point(lambda grey: 255 * (grey < 225)).getbbox()
        assert last is not None
        blank.append(1 - last[3] / text.height)
    assert max(blank) < 0.25, blank


@pytest.mark.parametrize(("width", "columns"), [(400, 1), (1200, 2)])
def test_pictures_in_a_row_stand_in_pairs_where_there_is_room(
    browser: Any, long_report: Path, width: int, columns: int
) -> None:
    browser.open(long_report, width)
    tops = browser.evaluate(
        "[...document.querySelectorAll('.pictures .picture')]"
        ".map(part => Math.round(part.getBoundingClientRect().top))"
    )
    assert len(tops) == 4
    assert len({*tops}) == 4 // columns
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_a_thumbnail_is_shown_and_its_long_name_is_broken(browser: Any, tmp_path: Path) -> None:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), (200, 30, 30)).save(file, "PNG")
    label = "photos/" + "very_long_name" * 20 + ".png"
    document = Document("Images", blocks=[Thumbnail(file.getvalue(), label)])
    write_document(document, tmp_path, {})
    browser.open(tmp_path / "report.html", 320)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 320
    box = browser.evaluate(
        "(() => { const box = document.querySelector('img').getBoundingClientRect();"
        " return {x: box.x, y: box.y, width: box.width, height: box.height}; })()"
    )
    assert (box["width"], box["height"]) == (96, 96)  # 8 pixels, 12 times as large
    seen = Image.open(io.BytesIO(browser.screenshot(box))).convert("RGB")
    assert seen.getpixel((seen.width // 2, seen.height // 2)) == (200, 30, 30)
