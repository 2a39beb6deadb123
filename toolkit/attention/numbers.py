"""The shares as JSON, for programs."""

from __future__ import annotations

import json
from typing import Any

from torch import Tensor

from toolkit.attention.page import summaries
from toolkit.attention.reading import Reading
from toolkit.attention.tokens import Tokens
from toolkit.attention.weights import AttentionMaps
from toolkit.json_values import write_text

_DECIMALS = 6


def as_json(reading: Reading) -> dict[str, Any]:
    """All of a reading: `weights` are lists [layers][heads][queries][keys], as are their `mean` and
    `rollout` [layers][queries][keys]; six decimals."""
    patches = None
    if (image := reading.image) is not None:
        patches = {"rows": image.rows, "columns": image.columns, "first_token": image.first}
    return {
        "model": reading.model,
        "model_class": reading.model_class,
        "texts": list(reading.texts),
        "translation": reading.written,
        "translation_is_the_models_own": reading.made if reading.written is not None else None,
        "patches": patches,
        "remarks": list(reading.remarks),
        "attention": {kind: _maps(maps) for kind, maps in reading.maps.items()},
    }


def write_numbers(reading: Reading, path: str) -> None:
    """Write `as_json` to a file on one line, or print it where the path is "-".

    Raises:
        UserError: the file cannot be written.
    """
    # One line: the many numbers would be as many lines.
    write_text(json.dumps(as_json(reading), ensure_ascii=False, allow_nan=False), path)


def _maps(maps: AttentionMaps) -> dict[str, Any]:
    return {
        "queries": _tokens(maps.queries),
        "keys": _tokens(maps.keys),
        "weights": _rounded(maps.weights),
        **{name: _rounded(values) for name, values in summaries(maps).items()},
    }


def _tokens(tokens: Tokens) -> list[dict[str, Any]]:
    return [
        {"token": label, "special": special}
        for label, special in zip(tokens.labels, tokens.special, strict=True)
    ]


def _rounded(values: Tensor) -> list[Any]:
    found: list[Any] = values.double().numpy().round(_DECIMALS).tolist()
    return found
