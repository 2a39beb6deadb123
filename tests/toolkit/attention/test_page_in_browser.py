"""The page in a real browser: it draws, clicking and keys work, and nothing is fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from toolkit.attention import AttentionMaps, Tokens
from toolkit.attention.page import render_page
from toolkit.attention.reading import Reading, read

pytestmark = pytest.mark.browser

CHOSEN = "document.querySelector('.map[aria-pressed=true]').getAttribute('aria-label')"
TITLE = "document.getElementById('detail-title').textContent"
READOUT = "document.getElementById('readout').textContent"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def by_hand(folder: Path) -> Path:
    """Two layers of two heads over three tokens, with shares that are easy to find again."""
    names = Tokens(("[CLS]", "酒店", "<b>好</b>"), (True, False, False))
    weights = torch.tensor(
        [[[[0.0, 1.0, 0.0], [0.25, 0.25, 0.5], [0.0, 0.0, 1.0]], torch.eye(3).tolist()]] * 2
    )
    maps = AttentionMaps("encoder", weights, names, names)
    file = folder / "by_hand.html"
    file.write_text(render_page(Reading("m", "M", ("酒店",), {"encoder": maps})), "utf-8")
    return file


@pytest.fixture(scope="module")
def translation(folder: Path, marian: Path) -> Path:
    file = folder / "translation.html"
    file.write_text(render_page(read(str(marian), ["3 plus 12"], max_tokens=12)), "utf-8")
    return file


@pytest.fixture(scope="module")
def of_image(folder: Path, vit: Path, photo: Path) -> Path:
    file = folder / "image.html"
    file.write_text(render_page(read(str(vit), [str(photo)])), "utf-8")
    return file


def pixel(place: str, x: int, y: int) -> str:
    """Red, green and blue of a canvas, as an expression."""
    return (
        f"[...document.querySelector('{place}').getContext('2d')"
        f".getImageData({x}, {y}, 1, 1).data].slice(0, 3)"
    )


def test_every_head_is_drawn_and_a_click_enlarges_it(browser: Any, by_hand: Path) -> None:
    browser.open(by_hand, 1200)

    assert browser.evaluate("document.querySelectorAll('.map').length") == 2 * (2 + 2)
    # White is 0, the darkest 1, and a quarter lies half way, as its root is a half.
    head = '.map[data-layer="1"][data-head="0"] canvas'
    assert browser.evaluate(pixel(head, 0, 0)) == [255, 255, 255]
    assert browser.evaluate(pixel(head, 1, 0)) == [0, 43, 77]
    near = browser.evaluate(pixel(head, 0, 1))
    assert max(abs(a - b) for a, b in zip(near, [0, 114, 178], strict=True)) <= 2
    assert browser.evaluate(TITLE) == "Layer 1, head 1"

    browser.evaluate('document.querySelector(\'.map[data-layer="1"][data-head="1"]\').click()')

    assert browser.evaluate(TITLE) == "Layer 2, head 2"
    assert browser.evaluate(CHOSEN) == "Layer 2, head 2"
    assert browser.evaluate(READOUT) == "酒店 looks at 酒店 100\u00a0%"


def test_pointing_at_a_token_shows_its_shares(browser: Any, by_hand: Path) -> None:
    browser.open(by_hand, 1200)

    shown = "[...document.querySelectorAll('.token small')].map(small => small.textContent)"
    assert browser.evaluate(shown) == ["25\u00a0%", "25\u00a0%", "50\u00a0%"]
    assert browser.evaluate("document.querySelectorAll('.token')[2].firstChild.data") == "<b>好</b>"
    browser.evaluate(
        "document.querySelectorAll('.token')[0]"
        ".dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))"
    )
    assert browser.evaluate(shown) == ["", "100\u00a0%", ""]
    assert browser.evaluate(READOUT) == "[CLS] looks at 酒店 100\u00a0%"
    browser.evaluate("document.getElementById('flows').dispatchEvent(new MouseEvent('mouseleave'))")
    assert browser.evaluate(shown) == ["25\u00a0%", "25\u00a0%", "50\u00a0%"]

    browser.evaluate("document.querySelector('[value=to]').click()")
    assert browser.evaluate(READOUT) == "酒店 is looked at by [CLS] 100\u00a0%, 酒店 25\u00a0%"
    browser.evaluate("document.getElementById('without-special').click()")
    assert browser.evaluate(READOUT) == "酒店 is looked at by 酒店 25\u00a0%"
    head = '.map[data-layer="0"][data-head="0"] canvas'
    assert browser.evaluate(pixel(head, 1, 0)) == [255, 255, 255]


def press(browser: Any, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                     windowsVirtualKeyCode={"Enter": 13, "ArrowDown": 40, "ArrowRight": 39}[key],
                     **text)  # fmt: skip


def test_the_keyboard_does_it_too(browser: Any, by_hand: Path) -> None:
    browser.open(by_hand, 1200)
    browser.evaluate("document.querySelector('.map[aria-pressed=true]').focus()")

    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        press(browser, key)
    assert browser.evaluate(TITLE) == "Layer 1, head 1"
    press(browser, "Enter")

    assert browser.evaluate(TITLE) == "Layer 2, mean"


def test_the_table_says_what_is_under_the_pointer(browser: Any, by_hand: Path) -> None:
    browser.open(by_hand, 1200)
    box = browser.evaluate("document.getElementById('heat').getBoundingClientRect().toJSON()")
    # The last row and column: at the lower right, whatever room the names take.
    browser.evaluate(
        "document.getElementById('heat').dispatchEvent(new MouseEvent('mousemove', "
        f"{{clientX: {box['right'] - 4}, clientY: {box['bottom'] - 4}}}))"
    )
    assert browser.evaluate(READOUT) == "<b>好</b> looks at <b>好</b>: 100\u00a0%"


def test_a_translation_has_three_tabs(browser: Any, translation: Path) -> None:
    browser.open(translation, 1200)

    tabs = "[...document.querySelectorAll('[role=tab]')]"
    assert browser.evaluate(f"{tabs}.map(tab => tab.textContent)") == [
        "Encoder", "Decoder", "Cross-attention",
    ]  # fmt: skip
    assert browser.evaluate(f"{tabs}.map(tab => tab.getAttribute('aria-selected'))") == [
        "false", "false", "true",
    ]  # fmt: skip
    assert browser.evaluate("document.querySelectorAll('.flow').length") == 2
    assert " is written looking at " in browser.evaluate(READOUT)
    browser.evaluate("document.querySelectorAll('.flow')[1].querySelector('.token').click()")
    assert " is looked at by " in browser.evaluate(READOUT)

    browser.evaluate(f"{tabs}[1].click()")

    assert browser.evaluate("document.querySelectorAll('.flow').length") == 1
    assert browser.evaluate("document.querySelectorAll('.map').length") == 2 * (4 + 2)
    assert "upper right half" in browser.evaluate("document.getElementById('caption').textContent")


def test_an_image_under_its_attention(browser: Any, of_image: Path) -> None:
    browser.open(of_image, 1200)

    assert browser.evaluate("document.getElementById('image').naturalWidth") == 12
    assert browser.evaluate("[light.width, light.height]") == [3, 2]
    assert browser.evaluate(READOUT).startswith("[CLS] looks at ")
    box = browser.evaluate("light.getBoundingClientRect().toJSON()")
    browser.evaluate(
        "light.dispatchEvent(new MouseEvent('click', {"
        f"clientX: {box['right'] - 3}, clientY: {box['bottom'] - 3}, bubbles: true}}))"
    )
    assert browser.evaluate(READOUT).startswith("(2, 3) looks at ")
    assert not browser.evaluate("document.getElementById('frame').hidden")


@pytest.mark.parametrize("width", [320, 400, 1200])
@pytest.mark.parametrize("name", ["by_hand", "translation", "of_image"])
def test_no_page_is_wider_than_the_screen_and_none_fetches(
    browser: Any, request: pytest.FixtureRequest, name: str, width: int
) -> None:
    page = request.getfixturevalue(name)
    browser.open(page, width)

    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    fetched = [url for url in browser.requests if not url.startswith("data:")]
    assert fetched == [page.as_uri()]
    # A way of fetching that somebody adds would be blocked, too.
    assert browser.evaluate("document.querySelector('meta[http-equiv]').content").startswith(
        "default-src 'none'"
    )


def test_128_tokens_of_a_base_model_are_drawn(browser: Any, folder: Path) -> None:
    names = Tokens(tuple(f"词{n}" for n in range(128)), (False,) * 128)
    weights = torch.rand(12, 12, 128, 128, generator=torch.Generator().manual_seed(0)).softmax(-1)
    maps = AttentionMaps("encoder", weights, names, names)
    page = folder / "large.html"
    page.write_text(render_page(Reading("m", "M", ("文",), {"encoder": maps})), "utf-8")

    browser.open(page, 1200)

    assert browser.evaluate("document.querySelectorAll('.map canvas').length") == 12 * 14
    assert browser.evaluate("document.querySelectorAll('.token').length") == 128
    browser.evaluate("document.querySelectorAll('.map')[100].click()")
    assert browser.evaluate(TITLE) == "Layer 8, head 3"
