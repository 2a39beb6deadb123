"""Attention as one HTML file that needs nothing else: no network, no server, no fonts."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import torch
from torch import Tensor

from toolkit.attention.images import SeenImage
from toolkit.attention.reading import Reading
from toolkit.attention.rollout import rollout
from toolkit.attention.tokens import Tokens
from toolkit.attention.weights import AttentionMaps, Kind
from toolkit.report.plain_text import has_right_to_left, one_line, visible
from toolkit.report.templating import template_environment

MEAN, ROLLOUT = "mean", "rollout"
MOST_CHARACTERS = 9_000_000
"""Of weights in a page, all attentions together; it is to stay below 10 MB."""
_FINE, _COARSE = 65535, 255  # steps of a value, in two bytes and in one
_TABS: dict[Kind, str] = {"encoder": "Encoder", "decoder": "Decoder", "cross": "Cross-attention"}


def render_page(reading: Reading) -> str:
    """The page of what a model read: every layer and head, one of them enlarged.

    All texts, tokens too, are data to it: none is ever taken for markup or a script.
    """
    tables = {kind: _table(reading, maps) for kind, maps in reading.maps.items()}
    whole = sum(_size(weights, _FINE) for weights, _ in tables.values())
    steps = _FINE if whole <= MOST_CHARACTERS else _COARSE
    attentions = [_attention(reading, kind, *table, steps) for kind, table in tables.items()]
    return (
        _environment()
        .get_template("attention.html.j2")
        .render(
            reading=reading,
            model=display_name(reading.model),
            title=f"Attention of {display_name(reading.model)}: {_shortened(reading.texts[0])}",
            tabs=[attention["title"] for attention in attentions],
            data={"attentions": attentions, "image": _image(reading.image)},
            steps=steps,
            has_rollout=any(ROLLOUT in attention["summaries"] for attention in attentions),
        )
    )


def display_name(model: str) -> str:
    """What a page calls a model: its folder without the path to it, which is nobody's business."""
    path = Path(model).expanduser()
    if not path.exists():
        return model
    parts = path.resolve().parts
    is_of_run = parts[-1] in ("model", "adapter") or (path / "summary.json").is_file()
    return "/".join(parts[-2:] if is_of_run else parts[-1:])


def summaries(maps: AttentionMaps) -> dict[str, Tensor]:
    """By name float32 [layers, queries, keys]: the mean of the heads; within one text rollout."""
    found = {MEAN: maps.weights.mean(1)}
    if maps.kind != "cross":
        found[ROLLOUT] = rollout(maps.weights)
    return found


def _table(reading: Reading, maps: AttentionMaps) -> tuple[Tensor, Tokens]:
    """What is shown [layers, heads and summaries, queries, keys], and of which queries."""
    beside = summaries(maps)
    weights = torch.cat([maps.weights, *(part[:, None] for part in beside.values())], dim=1)
    queries = maps.queries
    if reading.image is not None and _size(weights, _COARSE) > MOST_CHARACTERS:
        # Of many large tables, what the class token takes from the patches.
        shown = max(reading.image.first, 1)
        weights = weights[:, :, :shown]
        queries = Tokens(queries.labels[:shown], queries.special[:shown])
    return weights, queries


def _attention(
    reading: Reading, kind: Kind, weights: Tensor, queries: Tokens, steps: int
) -> dict[str, Any]:
    """What the script needs of one attention."""
    maps = reading.maps[kind]
    return {
        "kind": kind,
        "title": _TABS[kind] if len(reading.maps) > 1 else "Attention",
        "caption": caption(reading, kind),
        "layers": maps.layers,
        "heads": maps.heads,
        "summaries": list(summaries(maps)),
        "queries": _shown(queries),
        "keys": _shown(maps.keys),
        "steps": steps,
        "weights": _encoded(weights, steps),
    }


def caption(reading: Reading, kind: Kind) -> str:
    """What one sees, in words."""
    if reading.image is not None:
        who = "the class token" if reading.image.first else "the upper left patch"
        return (
            f"Where {who} looks: yellow patches give it much, dark blue ones little. Every picture "
            "is scaled to the patch that gives most. Click a patch to see where it looks itself."
        )
    if kind == "cross":
        return (
            "A row is a token of the translation at the moment it is written, a column a token of "
            "the text it is translated from; every row sums to 100 %."
        )
    if kind == "decoder":
        start = " The decoder reads its own output, one place later: first a start token." * (
            "cross" in reading.maps
        )
        return (
            "A row is the token that looks, a column the token it looks at: itself and those "
            f"before it, so the upper right half is empty. Every row sums to 100 %.{start}"
        )
    return (
        "A row is the token that looks (the query), a column the token it looks at (the key); "
        "every row sums to 100 %."
    )


def _size(weights: Tensor, steps: int) -> int:
    """Characters of base64."""
    return weights.numel() * (2 if steps == _FINE else 1) * 4 // 3


def _encoded(weights: Tensor, steps: int) -> str:
    """Square roots in whole steps, little endian, base64: a root is fine where weights are small.

    A weight w comes back as (step / steps)²; its error is at most sqrt(w) / steps + 1 / steps².
    """
    codes = (weights.clamp(0, 1).sqrt() * steps).round()
    numbers = codes.numpy().astype("<u2" if steps == _FINE else "u1")
    return base64.b64encode(numbers.tobytes()).decode("ascii")


def _shown(tokens: Tokens) -> dict[str, Any]:
    return {
        "labels": [visible(label) for label in tokens.labels],
        "special": [int(special) for special in tokens.special],
    }


def _image(image: SeenImage | None) -> Mapping[str, Any] | None:
    if image is None:
        return None
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image.pixels).save(file, "PNG", optimize=True)
    return {
        "source": f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}",
        "width": image.pixels.shape[1],
        "height": image.pixels.shape[0],
        "rows": image.rows,
        "columns": image.columns,
        "first": image.first,
    }


def _shortened(text: str, most: int = 60) -> str:
    text = one_line(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


@cache
def _environment() -> jinja2.Environment:
    environment = template_environment("toolkit.attention")
    environment.globals["has_right_to_left"] = has_right_to_left
    return environment
