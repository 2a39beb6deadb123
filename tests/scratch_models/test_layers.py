"""Positions, feed-forward and stack against their formulas and torch's own modules."""

from __future__ import annotations

import math
from typing import ClassVar

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers import PreTrainedConfig

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.layers.attention import MultiHeadAttention
from scratch_models.layers.feed_forward import FeedForward
from scratch_models.layers.positions import (
    LearnedPositions,
    SinusoidalPositions,
    sinusoidal_positions,
)
from scratch_models.layers.stack import EncoderLayer, EncoderStack, post_norm, pre_norm


@pytest.mark.parametrize("dim", [2, 7, 16])
def test_sinusoids_follow_the_formula_of_the_paper(dim: int) -> None:
    table = sinusoidal_positions(50, dim)
    for position in (0, 1, 17, 49):
        for i in range(dim):
            angle = position / 10000 ** (2 * (i // 2) / dim)
            expected = math.sin(angle) if i % 2 == 0 else math.cos(angle)
            assert table[position, i].item() == pytest.approx(expected, abs=1e-6)


def test_positions_can_be_chosen() -> None:
    for positions in (SinusoidalPositions(10, 4), LearnedPositions(10, 4)):
        chosen = torch.tensor([[3, 3, 0]])
        torch.testing.assert_close(positions(3, chosen)[0], positions(10)[0, chosen[0]])


def test_learned_positions_refuse_too_many_tokens_with_both_numbers() -> None:
    positions = LearnedPositions(10, 4)
    assert positions(10).shape == (1, 10, 4)
    with pytest.raises(ValueError, match=r"11 tokens .* 10 only"):
        positions(11)


def test_sinusoids_survive_loading(tmp_path) -> None:
    """What is outside the checkpoint comes out of from_pretrained as whatever memory held."""

    class Positioned(ScratchPreTrainedModel):
        config_class = PreTrainedConfig

        _keys_to_ignore_on_save: ClassVar[list[str]] = ["positions.weight"]

        def __init__(self, config: PreTrainedConfig) -> None:
            super().__init__(config)
            self.positions = SinusoidalPositions(12, 6)
            self.linear = nn.Linear(6, 6)
            self.post_init()

    Positioned(PreTrainedConfig()).save_pretrained(tmp_path)
    loaded = Positioned.from_pretrained(tmp_path)
    assert torch.equal(loaded.positions.weight, sinusoidal_positions(12, 6))


def build_layer(residual, dropout: float = 0.0) -> EncoderLayer:
    return EncoderLayer(
        MultiHeadAttention(16, 4),
        nn.LayerNorm(16),
        FeedForward(16, 24, F.relu),
        nn.LayerNorm(16),
        dropout=dropout,
        residual=residual,
    )


@pytest.mark.parametrize("residual", [post_norm, pre_norm])
def test_encoder_layer_equals_torch(residual) -> None:
    ours = build_layer(residual)
    theirs = nn.TransformerEncoderLayer(
        16, 4, 24, dropout=0.0, batch_first=True, norm_first=residual is pre_norm
    )
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
        projections = (ours.attention.query, ours.attention.key, ours.attention.value)
        theirs.self_attn.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
        theirs.self_attn.out_proj.load_state_dict(ours.attention.output.state_dict())
        theirs.linear1.load_state_dict(ours.feed_forward.up.state_dict())
        theirs.linear2.load_state_dict(ours.feed_forward.down.state_dict())
        theirs.norm1.load_state_dict(ours.attention_norm.state_dict())
        theirs.norm2.load_state_dict(ours.feed_forward_norm.state_dict())
    x = torch.randn(2, 5, 16)
    torch.testing.assert_close(ours(x), theirs(x), atol=1e-5, rtol=1e-5)


def test_stack_applies_its_layers_in_order() -> None:
    layers = [build_layer(post_norm) for _ in range(3)]
    x = torch.randn(2, 5, 16)
    expected = layers[2](layers[1](layers[0](x)))
    assert torch.equal(EncoderStack(layers)(x), expected)
