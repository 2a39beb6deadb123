"""A classifier whose last layer computes the first token only gives what the full one gives."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from scratch_models import ScratchBertForSequenceClassification
from scratch_models.layers.attention import MultiHeadAttention
from scratch_models.layers.feed_forward import FeedForward
from scratch_models.layers.stack import EncoderLayer, EncoderStack, post_norm, pre_norm


def build_layer(residual: object, size: int = 16) -> EncoderLayer:
    return EncoderLayer(
        attention=MultiHeadAttention(size, 4),
        attention_norm=nn.LayerNorm(size),
        feed_forward=FeedForward(size, 32, nn.GELU()),
        feed_forward_norm=nn.LayerNorm(size),
        dropout=0.0,
        residual=residual,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("residual", [post_norm, pre_norm])
@pytest.mark.parametrize("masked", [False, True])
def test_the_first_token_is_the_same_in_value_and_gradient(residual: object, masked: bool) -> None:
    torch.manual_seed(0)
    stack = EncoderStack([build_layer(residual) for _ in range(3)]).double()
    x = torch.randn(2, 5, 16, dtype=torch.float64, requires_grad=True)
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    mask[1, :, :, 3:] = False
    arguments = (x, mask if masked else None)
    results = []
    for first_token_only in (False, True):
        first = stack(*arguments, first_token_only=first_token_only)[:, 0]
        weights = torch.linspace(-1, 1, 16, dtype=torch.float64)
        gradients = torch.autograd.grad((first * weights).sum(), [x, *stack.parameters()])
        results.append([first, *gradients])
    for full, short in zip(*results, strict=True):
        torch.testing.assert_close(short, full, atol=1e-12, rtol=0)
    assert stack(*arguments, first_token_only=True).shape == (2, 1, 16)


def test_another_residual_order_is_refused_where_only_the_first_token_is_asked_for() -> None:
    def no_residual(x, sublayer, norm, dropout):  # type: ignore[no-untyped-def]
        return norm(sublayer(x))

    layer, x = build_layer(no_residual), torch.randn(1, 3, 16)
    assert layer(x).shape == x.shape
    with pytest.raises(ValueError, match="post_norm and pre_norm, not with no_residual"):
        layer(x, first_token_only=True)


def lengths_of_the_last_layer(model: nn.Module, **kwargs: object) -> list[int]:
    seen: list[int] = []
    hook = model.bert.layers[-1].register_forward_hook(  # type: ignore[union-attr,index]
        lambda module, args, output: seen.append(output.shape[1])
    )
    model(input_ids=torch.tensor([[5, 6, 7, 8]]), **kwargs)
    hook.remove()
    return seen


def test_a_classifier_computes_the_others_only_where_they_are_needed(tiny_config) -> None:  # type: ignore[no-untyped-def]
    model = ScratchBertForSequenceClassification(tiny_config()).eval()
    assert lengths_of_the_last_layer(model) == [1]
    assert lengths_of_the_last_layer(model, output_hidden_states=True) == [4]
    assert lengths_of_the_last_layer(model, output_attentions=True) == [4]
    assert lengths_of_the_last_layer(model.train()) == [4]  # equal to HuggingFace under a seed
    model.config.output_hidden_states = True
    assert lengths_of_the_last_layer(model.eval()) == [4]
    no_dropout = tiny_config(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    assert lengths_of_the_last_layer(ScratchBertForSequenceClassification(no_dropout)) == [1]


def test_logits_are_the_full_model_s(tiny_config) -> None:  # type: ignore[no-untyped-def]
    model = ScratchBertForSequenceClassification(tiny_config()).eval()
    batch = {
        "input_ids": torch.tensor([[5, 6, 7, 8], [9, 10, 0, 0]]),
        "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]),
    }
    for implementation in ("sdpa", "eager", "scratch"):
        model.set_attn_implementation(implementation)
        full = model(**batch, output_hidden_states=True).logits
        torch.testing.assert_close(model(**batch).logits, full, atol=1e-6, rtol=0)
