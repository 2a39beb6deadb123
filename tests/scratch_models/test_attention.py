"""The three forms of attention agree with each other and with torch."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from transformers import BertConfig, GPT2Config, GPT2LMHeadModel

from scratch_models.layers.attention import MultiHeadAttention, scaled_dot_product_attention
from scratch_models.layers.attention_by_hand import MultiHeadAttentionByHand, attention, softmax

SHAPES = st.tuples(*[st.integers(1, n) for n in (3, 3, 7, 7, 9)])


def random_inputs(shape: tuple[int, ...], seed: int, scale: float) -> tuple[torch.Tensor, ...]:
    batch, heads, queries, keys, dim = shape
    generator = torch.Generator().manual_seed(seed)
    sizes = [(batch, heads, n, dim) for n in (queries, keys, keys)]
    # In double precision: formulas are compared here, not roundings.
    query, key, value = (
        torch.randn(size, generator=generator, dtype=torch.float64) * scale for size in sizes
    )
    visible = torch.rand(batch, 1, queries, keys, generator=generator) < 0.7
    visible[..., 0] = True  # a row without any visible key is defined by no formula
    return query, key, value, visible


@settings(max_examples=60, deadline=None)
@given(shape=SHAPES, seed=st.integers(0, 10_000), scale=st.sampled_from([0.1, 1.0, 30.0]))
def test_by_hand_written_out_and_torch_agree(
    shape: tuple[int, ...], seed: int, scale: float
) -> None:
    query, key, value, visible = random_inputs(shape, seed, scale)
    expected = F.scaled_dot_product_attention(query, key, value, visible)
    written_out, weights = scaled_dot_product_attention(query, key, value, visible)
    torch.testing.assert_close(written_out, expected, atol=1e-10, rtol=1e-10)
    by_hand = attention(query, key, value, visible)
    torch.testing.assert_close(by_hand, expected, atol=1e-10, rtol=1e-10)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert (weights.masked_select(~visible.expand_as(weights)) == 0).all()


def test_attention_of_two_tokens_computed_by_pencil() -> None:
    # Scores of the first query: (1*2 + 0*0)/sqrt(2) and (1*0 + 0*2)/sqrt(2).
    query = torch.tensor([[[[1.0, 0.0]]]])
    key = torch.tensor([[[[2.0, 0.0], [0.0, 2.0]]]])
    value = torch.tensor([[[[10.0, 0.0], [0.0, 10.0]]]])
    first = math.exp(2 / math.sqrt(2)) / (math.exp(2 / math.sqrt(2)) + 1)
    expected = torch.tensor([[[[10 * first, 10 * (1 - first)]]]])
    torch.testing.assert_close(attention(query, key, value), expected)
    torch.testing.assert_close(scaled_dot_product_attention(query, key, value)[0], expected)


@given(st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=9))
def test_softmax_by_hand_is_softmax_and_does_not_overflow(scores: list[float]) -> None:
    tensor = torch.tensor(scores)
    torch.testing.assert_close(softmax(tensor), tensor.softmax(0))


@pytest.mark.parametrize("heads", [1, 2, 8])
def test_multi_head_attention_equals_torch(heads: int) -> None:
    ours = MultiHeadAttention(16, heads)
    theirs = nn.MultiheadAttention(16, heads, batch_first=True)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.normal_(std=0.5)
        projections = (ours.query, ours.key, ours.value)
        theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        theirs.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    x = torch.randn(3, 6, 16)
    visible = torch.ones(3, 6, dtype=torch.bool)
    visible[1, 4:] = False
    expected, expected_weights = theirs(
        x, x, x, key_padding_mask=~visible, average_attn_weights=False
    )
    output, weights = ours(x, visible[:, None, None, :])
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(weights, expected_weights)
    by_hand = MultiHeadAttentionByHand.from_module(ours)
    torch.testing.assert_close(by_hand(x, visible), expected)


def test_by_hand_has_the_gradients_of_the_module() -> None:
    ours = MultiHeadAttention(12, 3)
    by_hand = MultiHeadAttentionByHand.from_module(ours)
    x = torch.randn(2, 5, 12)
    ours(x)[0].square().sum().backward()
    by_hand(x).square().sum().backward()
    for name, parameter in ours.named_parameters():
        gradient = by_hand.get_parameter(name.replace(".", "_")).grad
        torch.testing.assert_close(gradient, parameter.grad)


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ValueError, match="5 heads do not divide hidden size 32"):
        MultiHeadAttention(32, 5)


def test_fused_kernels_give_weights_on_request_and_the_same_output() -> None:
    config = BertConfig(attn_implementation="sdpa")
    module = MultiHeadAttention(16, 4, config=config)
    x = torch.randn(2, 5, 16)
    output, weights = module(x)
    assert weights is None
    output_again, weights = module(x, output_attentions=True)
    assert torch.equal(output, output_again)
    config._attn_implementation = "eager"
    torch.testing.assert_close(weights, module(x)[1])


@pytest.mark.parametrize("padding", ["none", "left", "right"])
def test_scratch_attention_serves_a_causal_model_of_transformers(padding: str) -> None:
    """Registered for masks too: otherwise it would be handed none and see the future."""
    config = GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3)
    model = GPT2LMHeadModel(config).eval()
    ids = torch.randint(50, (2, 7))
    mask = torch.ones_like(ids)
    if padding != "none":
        mask[1, :3] = 0
        mask = mask if padding == "left" else mask.flip(1)
    logits = {}
    for implementation in ("eager", "scratch"):
        model.set_attn_implementation(implementation)
        with torch.no_grad():
            logits[implementation] = model(ids, attention_mask=mask).logits[mask.bool()]
    torch.testing.assert_close(logits["scratch"], logits["eager"], atol=1e-5, rtol=0)
