"""Layers, their residual order and the loop over them ("Attention Is All You Need", §3.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedConfig
from transformers.modeling_layers import GradientCheckpointingLayer

from scratch_models.layers.masks import MASK_TENSOR_IMPLEMENTATIONS
from scratch_models.layers.packing import PackedSequences

Sublayer = Callable[[Tensor], Tensor]
ResidualOrder = Callable[[Tensor, Sublayer, nn.Module, nn.Module], Tensor]


def post_norm(x: Tensor, sublayer: Sublayer, norm: nn.Module, dropout: nn.Module) -> Tensor:
    """LayerNorm(x + Sublayer(x)): the order of the 2017 paper (§3.1, dropout §5.4) and of BERT."""
    return norm(x + dropout(sublayer(x)))


def pre_norm(x: Tensor, sublayer: Sublayer, norm: nn.Module, dropout: nn.Module) -> Tensor:
    """x + Sublayer(LayerNorm(x)): the order of GPT-2 (§2.3) and ViT; trains deep stacks easily."""
    return x + dropout(sublayer(norm(x)))


class EncoderLayer(GradientCheckpointingLayer):
    """Self-attention, then feed-forward, each with residual connection and norm (§3.1).

    Receives built parts; other architectures pass other parts.

    Args:
        attention: called with (hidden_states, attention_mask, …), returns (output, weights).
        attention_norm: the norm of the attention sublayer.
        feed_forward: [batch, length, hidden_size] -> the same.
        feed_forward_norm: the norm of the feed-forward sublayer.
        dropout: probability, on the output of each sublayer.
        residual: `post_norm`, `pre_norm` or another order of the same signature.
    """

    def __init__(
        self,
        attention: nn.Module,
        attention_norm: nn.Module,
        feed_forward: nn.Module,
        feed_forward_norm: nn.Module,
        dropout: float,
        residual: ResidualOrder,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = attention_norm
        self.feed_forward = feed_forward
        self.feed_forward_norm = feed_forward_norm
        self.dropout = nn.Dropout(dropout)
        self.residual = residual

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Any = None,
        first_token_only: bool = False,
        **kwargs: Any,
    ) -> Tensor:
        """[batch, length, hidden_size] -> the same.

        With `first_token_only` -> [batch, 1, hidden_size]: the first token still attends to all,
        but nothing else is computed for the others. The last layer of a classifier needs no more,
        and spares most of its work: of 12 matrix products of size hidden_size x hidden_size a token
        (4 in the attention, 8 in a feed-forward part four times as wide) the other tokens need 2,
        keys and values. Texts packed in one row -> [1, texts that are not empty, hidden_size].

        Raises:
            ValueError: `first_token_only` with another residual order than the two of this file.
        """
        if first_token_only:
            kwargs["context"] = self._attended_to(hidden_states)
            if isinstance(attention_mask, PackedSequences):
                hidden_states = attention_mask.first(hidden_states)
                attention_mask = attention_mask.first_tokens_only
            else:
                hidden_states = hidden_states[:, :1]
                attention_mask = None if attention_mask is None else attention_mask[:, :, :1]

        def attend(x: Tensor) -> Tensor:
            return self.attention(x, attention_mask, **kwargs)[0]

        x = self.residual(hidden_states, attend, self.attention_norm, self.dropout)
        return self.residual(x, self.feed_forward, self.feed_forward_norm, self.dropout)

    def _attended_to(self, hidden_states: Tensor) -> Tensor:
        """What keys and values are made of in the full computation."""
        if self.residual is post_norm:
            return hidden_states
        if self.residual is pre_norm:
            return self.attention_norm(hidden_states)
        name = getattr(self.residual, "__name__", repr(self.residual))
        raise ValueError(
            f"first_token_only works with the residual orders post_norm and pre_norm, not with "
            f"{name}: what its keys and values are made of is not known."
        )


class DecoderLayer(GradientCheckpointingLayer):
    """Self-attention, cross-attention, feed-forward, each with residual connection and norm (§3.1).

    The decoder of a model with an encoder. (A decoder alone, like GPT's, has no cross-attention:
    it is an `EncoderLayer` that was given a `CausalSelfAttention`.)

    Args:
        attention: a `CausalSelfAttention`.
        attention_norm: the norm of its sublayer.
        cross_attention: a `CrossAttention`.
        cross_attention_norm: the norm of its sublayer.
        feed_forward: [batch, length, hidden_size] -> the same.
        feed_forward_norm: the norm of its sublayer.
        dropout: probability, on the output of each sublayer.
        residual: `post_norm`, `pre_norm` or another order of the same signature.
    """

    def __init__(
        self,
        attention: nn.Module,
        attention_norm: nn.Module,
        cross_attention: nn.Module,
        cross_attention_norm: nn.Module,
        feed_forward: nn.Module,
        feed_forward_norm: nn.Module,
        dropout: float,
        residual: ResidualOrder,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = attention_norm
        self.cross_attention = cross_attention
        self.cross_attention_norm = cross_attention_norm
        self.feed_forward = feed_forward
        self.feed_forward_norm = feed_forward_norm
        self.dropout = nn.Dropout(dropout)
        self.residual = residual

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Any,
        context: Tensor,
        context_mask: Any = None,
        **kwargs: Any,
    ) -> Tensor:
        """[batch, length, hidden_size] -> the same.

        Args:
            hidden_states: the decoder's.
            attention_mask: who sees whom within the target.
            context: the encoder's output [batch, source length, hidden_size].
            context_mask: which of the source may be seen.
            **kwargs: for both attentions (`cache`, `output_attentions`).
        """

        def attend(x: Tensor) -> Tensor:
            return self.attention(x, attention_mask, **kwargs)[0]

        def attend_to_context(x: Tensor) -> Tensor:
            return self.cross_attention(x, context, context_mask, **kwargs)[0]

        x = self.residual(hidden_states, attend, self.attention_norm, self.dropout)
        x = self.residual(x, attend_to_context, self.cross_attention_norm, self.dropout)
        return self.residual(x, self.feed_forward, self.feed_forward_norm, self.dropout)


class EncoderStack(nn.ModuleList):
    """N layers, one on the other.

    What each layer returns (`output_hidden_states`) and its attention weights are picked up by
    transformers' output capturing, which watches the layers, so the loop need not collect them.
    """

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Any = None,
        first_token_only: bool = False,
        **kwargs: Any,
    ) -> Tensor:
        """[batch, length, hidden_size] -> the same, or its first token only [batch, 1, ...]."""
        for number, layer in enumerate(self, start=1):
            if first_token_only and number == len(self):
                kwargs["first_token_only"] = True
            hidden_states = layer(hidden_states, attention_mask, **kwargs)
        return hidden_states

    def first_token_suffices(
        self, config: PreTrainedConfig, mask: Any = None, **kwargs: Any
    ) -> bool:
        """True where a head that reads the first token only may leave the others out.

        Not where the caller asks for hidden states or attention weights, nor for masks that are no
        tensors [batch, heads, queries, keys]; and not while dropout is drawn: the full computation
        then stays equal to HuggingFace's, number for number, under the same seed. Texts that are
        packed draw other numbers anyway.
        """
        wanted = ("output_hidden_states", "output_attentions")
        if any(kwargs.get(name) or getattr(config, name, False) for name in wanted):
            return False
        if config._attn_implementation not in MASK_TENSOR_IMPLEMENTATIONS:
            return False
        if isinstance(mask, PackedSequences):
            return True
        return not (self.training and _draws_dropout(self[-1]))


def _draws_dropout(layer: nn.Module) -> bool:
    """True where a layer in training drops anything (attention keeps its rate as a number)."""
    rates = [module.p for module in layer.modules() if isinstance(module, nn.Dropout)]
    rates += [getattr(module, "dropout", 0.0) for module in layer.modules()]
    return any(isinstance(rate, float) and rate > 0 for rate in rates)
