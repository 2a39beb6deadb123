"""Cuts as JSON values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from toolkit.tokens.cutting import Cut, Cutter
from toolkit.tokens.terminal import remarks


def as_values(
    cutters: Sequence[Cutter], notes: Sequence[str], cuts: Sequence[Sequence[Cut]]
) -> dict[str, Any]:
    """Everything the tables show, tokens at full length.

    Args:
        notes: of every tokenizer what it was learnt from, where it is embedded.
        cuts: of every text those of all tokenizers.
    """
    return {
        "tokenizers": [_tokenizer(*pair) for pair in zip(cutters, notes, strict=True)],
        "texts": [
            {
                "text": of_text[0].text,
                "cuts": [_cut(*pair) for pair in zip(cutters, of_text, strict=True)],
            }
            for of_text in cuts
        ],
    }


def _tokenizer(cutter: Cutter, note: str) -> dict[str, Any]:
    return {
        "name": cutter.name,
        "class": type(cutter.tokenizer).__name__,
        "kind": cutter.kind.name,
        "explanation": cutter.kind.explanation,
        "learnt_from": note.removeprefix(", ") or None,
        "vocabulary": cutter.size,
        "model_max_length": cutter.limit,
        "lowercases": cutter.lowercases,
    }


def _cut(cutter: Cutter, cut: Cut) -> dict[str, Any]:
    return {
        "tokenizer": cutter.name,
        "tokens_of_text": cut.of_text,
        "special_tokens": len(cut.tokens) - cut.of_text,
        "unknown": len(cut.unknown),
        "tokens_a_character": cut.per_character,
        "tokens_a_word": cut.per_word,
        "decoded": cut.decoded,
        "given_back": cut.given_back,
        "changes": cut.changes,
        "offsets_by": cut.offsets_by,
        "remarks": remarks(cutter, cut),
        "tokens": [dataclasses.asdict(token) for token in cut.tokens],
    }
