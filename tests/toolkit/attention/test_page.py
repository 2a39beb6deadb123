"""The page: its numbers, that texts are only texts in it, and that it needs nothing else."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from toolkit.attention import AttentionMaps, Tokens
from toolkit.attention.images import SeenImage
from toolkit.attention.page import render_page, summaries
from toolkit.attention.reading import Reading, read
from toolkit.attention.rollout import rollout
from toolkit.attention.weights import Kind

from .conftest import data_of

NASTY = "</script><script>alert('1')</script> \"'&<!-- {{ 7*7 }} \u202e\x07"


def drawn(layers: int, heads: int, queries: int, keys: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return (4 * torch.randn(layers, heads, queries, keys, generator=generator)).softmax(-1)


def tokens(count: int, name: str = "词") -> Tokens:
    return Tokens(tuple(f"{name}{n}" for n in range(count)), (True, *[False] * (count - 1)))


def self_attention(layers: int, heads: int, length: int, text: str = "text") -> Reading:
    both = tokens(length)
    maps = AttentionMaps("encoder", drawn(layers, heads, length, length), both, both)
    return Reading("a model", "BertModel", (text,), {"encoder": maps})


def weights_in(attention: dict[str, Any]) -> NDArray[np.float64]:
    """As the script decodes them [layers, heads and summaries, queries, keys]."""
    raw = base64.b64decode(attention["weights"])
    codes = np.frombuffer(raw, "<u2" if attention["steps"] == 65535 else "u1")
    shape = (attention["layers"], attention["heads"] + len(attention["summaries"]),
             len(attention["queries"]["labels"]), len(attention["keys"]["labels"]))  # fmt: skip
    found: NDArray[np.float64] = (codes.reshape(shape) / attention["steps"]) ** 2
    return found


def test_a_page_has_the_weights_their_mean_and_rollout() -> None:
    reading = self_attention(3, 4, 9)
    maps = reading.maps["encoder"]

    [attention] = data_of(render_page(reading))["attentions"]

    found = weights_in(attention)
    assert attention["summaries"] == ["mean", "rollout"]
    np.testing.assert_allclose(found[:, :4], maps.weights.numpy(), atol=1e-4)
    np.testing.assert_allclose(found[:, 4], maps.weights.mean(1).numpy(), atol=1e-4)
    np.testing.assert_allclose(found[:, 5], rollout(maps.weights).numpy(), atol=1e-4)
    assert attention["queries"]["labels"] == [f"词{n}" for n in range(9)]
    assert attention["keys"]["special"] == [1] + [0] * 8


def test_attention_from_text_to_text_has_no_rollout() -> None:
    maps = AttentionMaps("cross", drawn(2, 2, 3, 5), tokens(3), tokens(5))
    assert list(summaries(maps)) == ["mean"]
    reading = Reading("m", "MarianMTModel", ("a",), {"cross": maps}, written="b", made=True)
    page = render_page(reading)
    assert "rollout" not in page.split("<script>")[0]
    assert "Its own translation" in page


def test_128_tokens_in_12_layers_of_12_heads_stay_below_10_mb() -> None:
    page = render_page(self_attention(12, 12, 128))
    assert len(page.encode()) < 10_000_000


def test_the_three_attentions_of_a_translation_stay_below_10_mb_together() -> None:
    """BART's base: 6 layers of 12 heads; each attention alone would be kept in fine steps."""
    side, weights = tokens(128), drawn(6, 12, 128, 128)
    kinds: tuple[Kind, ...] = ("encoder", "decoder", "cross")
    maps = {kind: AttentionMaps(kind, weights, side, side) for kind in kinds}
    page = render_page(Reading("m", "BartModel", ("a",), maps, written="b"))
    assert len(page.encode()) < 10_000_000
    assert "255 steps" in page
    assert {attention["steps"] for attention in data_of(page)["attentions"]} == {255}


def test_large_tables_are_kept_in_fewer_steps_and_the_page_says_so() -> None:
    reading = self_attention(12, 12, 160)
    page = render_page(reading)
    assert len(page.encode()) < 10_000_000
    assert "255 steps" in page
    assert "within 0.4 percentage points" in page
    [attention] = data_of(page)["attentions"]
    error = np.abs(weights_in(attention)[:, :12] - reading.maps["encoder"].weights.numpy())
    assert 0.001 < error.max() < 0.004
    assert "within 0.01 percentage points" in render_page(self_attention(2, 2, 5))


def test_of_a_large_model_of_images_the_class_token_is_kept() -> None:
    length = 1 + 14 * 14
    weights = drawn(24, 16, 1, length).expand(24, 16, length, length)
    names = tokens(length)
    maps = AttentionMaps("encoder", weights, names, names)
    pixels = np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    reading = Reading("vit", "ViTModel", ("a.png",), {"encoder": maps},
                      image=SeenImage(pixels, 14, 14, 1))  # fmt: skip

    page = render_page(reading)

    assert len(page.encode()) < 10_000_000
    data = data_of(page)
    [attention] = data["attentions"]
    assert attention["queries"]["labels"] == ["词0"]
    np.testing.assert_allclose(weights_in(attention)[:, :16], maps.weights[:, :, :1], atol=1e-4)
    image = data["image"]
    png = base64.b64decode(image["source"].removeprefix("data:image/png;base64,"))
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(png))), pixels)
    assert (image["rows"], image["columns"], image["first"]) == (14, 14, 1)


def test_texts_and_tokens_are_never_markup(read_page: Callable[[str], Any]) -> None:
    both = Tokens((NASTY, "酒"), (False, False))
    maps = AttentionMaps("encoder", drawn(1, 1, 2, 2), both, both)
    reading = Reading(NASTY, NASTY, (NASTY, NASTY), {"encoder": maps}, remarks=(NASTY,))

    page = render_page(reading)

    elements = read_page(page).elements
    assert [tag for tag, _, _ in elements].count("script") == 2
    shown = NASTY.replace("\x07", "␇")
    assert [text for tag, _, text in elements if tag == "dd"] == [shown, shown, shown]
    assert data_of(page)["attentions"][0]["queries"]["labels"] == [shown, "酒"]


def test_nothing_is_named_that_could_be_fetched(read_page: Callable[[str], Any]) -> None:
    page = render_page(self_attention(2, 2, 4))

    for _, attributes, _ in read_page(page).elements:
        for name in ("src", "srcset", "data", "action", "poster"):
            assert name not in attributes
        assert attributes.get("href", "#").startswith("#")
    assert not re.search(r"(https?:)?//\w", re.sub(r"(?m)^\s*//.*", "", page))
    assert not re.search(r"@import|url\((?![\"'`]?\$)", page)
    assert "default-src 'none'" in page


def test_chinese_fonts_are_named(gpt2: Path) -> None:
    page = render_page(read(str(gpt2), ["房间"]))
    assert '"PingFang SC"' in page
    assert "Noto Sans CJK SC" in page
    assert data_of(page)["attentions"][0]["keys"]["labels"][0] == "房 1/3"


def test_the_path_to_a_model_is_not_told(bert: Path, bert_run: Path) -> None:
    page = render_page(read(str(bert), ["房间"]))
    assert f"<h1>What {bert.name} attends to</h1>" in page
    assert str(bert.parent) not in page
    page = render_page(read(str(bert_run / "model"), ["房间"]))
    assert f"<h1>What {bert_run.name}/model attends to</h1>" in page


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_every_kind_is_explained(marian: Path, kind: str) -> None:
    attentions = data_of(render_page(read(str(marian), ["3 plus 12"], max_tokens=8)))["attentions"]
    [found] = [attention for attention in attentions if attention["kind"] == kind]
    expected = {"encoder": "(the query)", "decoder": "upper right half is empty",
                "cross": "at the moment it is written"}  # fmt: skip
    assert expected[kind] in found["caption"]
