"""Attention maps: real weights under every implementation, in every kind of attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from scratch_models.layers.cached_attention import CausalSelfAttention

IMPLEMENTATIONS = ["sdpa", "eager", "scratch"]
KINDS = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")


def maps(output: Any) -> dict[str, tuple[Tensor, ...]]:
    return {kind: output[kind] for kind in KINDS if output.get(kind)}


def is_causal(model, kind: str) -> bool:
    causal = any(isinstance(module, CausalSelfAttention) for module in model.modules())
    return causal and kind in ("attentions", "decoder_attentions")


def hidden_keys(case, kind: str, batch: dict[str, Any], keys: int) -> Tensor:
    """[rows, 1, 1, keys]: which keys are padding."""
    if case.reads_images or kind == "decoder_attentions":
        return torch.zeros(4, 1, 1, keys, dtype=torch.bool)
    return (batch["attention_mask"] == 0)[:, None, None, :]


def test_maps_are_what_the_model_attended_to(attending) -> None:
    model = attending.fresh()
    model.set_packing("off")  # else padding attends to nothing
    batch = attending.batch(model.config)
    for attn in IMPLEMENTATIONS:
        model.set_attn_implementation(attn)
        with torch.no_grad():
            plain, asked = model(**batch), model(**batch, output_attentions=True)
        check_maps(attending, model, batch, plain, asked)


def check_maps(attending, model, batch: dict[str, Any], plain: Any, asked: Any) -> None:
    assert not maps(plain)
    # Without maps a classifier's last layer computes the first token only: equal up to rounding.
    for key, value in plain.items():
        if isinstance(value, Tensor):
            torch.testing.assert_close(asked[key], value, atol=1e-6, rtol=1e-5)
    found = maps(asked)
    assert found
    for kind, layers in found.items():
        assert len(layers) == 2
        for weights in layers:
            rows, heads, queries, keys = weights.shape
            assert (rows, heads) == (4, 4)
            torch.testing.assert_close(weights.sum(-1), torch.ones(rows, heads, queries))
            hidden = hidden_keys(attending, kind, batch, keys)
            assert (weights[hidden.expand_as(weights)] == 0).all()
            if is_causal(model, kind):
                future = torch.ones(queries, keys, dtype=torch.bool).triu(1)
                assert (weights[..., future] == 0).all()
            assert (weights > 0).sum() > heads * queries * rows  # not on one key each


def test_maps_are_those_of_huggingface_s_eager_attention(attending_twin) -> None:
    scratch, reference = attending_twin.pair(attn="eager")
    batch = attending_twin.batch(scratch.config)
    with torch.no_grad():
        theirs = maps(reference(**batch, output_attentions=True))
    for attn in IMPLEMENTATIONS:
        scratch.set_attn_implementation(attn)
        with torch.no_grad():
            ours = maps(scratch(**batch, output_attentions=True))
        assert ours.keys() == theirs.keys()
        for kind, layers in theirs.items():
            for own, expected in zip(ours[kind], layers, strict=True):
                torch.testing.assert_close(own, expected, atol=1e-5, rtol=0)


def test_maps_asked_for_by_the_config(attending) -> None:
    model = attending.fresh(attn="eager", output_attentions=True)
    model.set_attn_implementation("sdpa")
    batch = attending.batch(model.config)
    with torch.no_grad():
        assert maps(model(**batch)).keys() == maps(model(**batch, output_attentions=True)).keys()
        assert not maps(model(**batch, output_attentions=False))
