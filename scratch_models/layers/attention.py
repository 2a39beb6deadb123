"""Attention: softmax(QK^T / sqrt(d_k)) V and its heads ("Attention Is All You Need", §3.2)."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedConfig
from transformers.masking_utils import sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from scratch_models.layers.masks import hide_masked_scores, to_score_mask
from scratch_models.layers.packed_attention import packed_attention, packed_weights
from scratch_models.layers.packing import PackedSequences


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """softmax(QK^T / sqrt(d_k)): how much every query takes from every key (§3.2.1).

    Args:
        query: [batch, heads, queries, head_dim].
        key: [batch, heads, keys, head_dim].
        mask: broadcastable to [batch, heads, queries, keys]; boolean (True = may be attended to)
            or a float that is added to the scores; None hides nothing.
        scale: the factor 1 / sqrt(d_k).

    Returns:
        [batch, heads, queries, keys]; rows sum to 1.
    """
    scores = query @ key.transpose(-2, -1) * scale
    return hide_masked_scores(scores, mask).softmax(dim=-1)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention(Q, K, V) = softmax(QK^T / sqrt(d_k)) V, equation (1) of §3.2.1.

    Shapes and mask as in `attention_weights`; value is [batch, heads, keys, head_dim].

    Returns:
        The output [batch, heads, queries, head_dim] and the weights it was made with (after
        dropout) [batch, heads, queries, keys].
    """
    if scale is None:
        scale = query.shape[-1] ** -0.5
    weights = F.dropout(attention_weights(query, key, mask, scale), p=dropout)
    return weights @ value, weights


def scratch_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Tensor, Tensor]:
    """`scaled_dot_product_attention` in the form transformers' attention interface calls.

    Returns the output as [batch, queries, heads, head_dim], which is what the interface promises.
    """
    output, weights = scaled_dot_product_attention(
        query, key, value, attention_mask, dropout=dropout, scale=scaling
    )
    return output.transpose(1, 2).contiguous(), weights


def scratch_mask(**kwargs: Any) -> Tensor | None:
    """The boolean mask of transformers' SDPA, but never left out for a causal model.

    SDPA may be told `is_causal` in place of a mask; the written-out attention knows masks only.
    """
    return sdpa_mask(**{**kwargs, "allow_is_causal_skip": False})


# Both under one name: an attention known to the first interface alone is handed no mask at all.
AttentionInterface.register("scratch", scratch_attention)
AttentionMaskInterface.register("scratch", scratch_mask)


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O with Q = K = V = the input (§3.2.2).

    Three separate projections rather than a fused one: adapters (peft) and checkpoints address
    `query`, `key` and `value` by name.

    Args:
        hidden_size: width of the input and the output; a multiple of `num_heads`.
        num_heads: h of the paper.
        dropout: on the attention weights, in training.
        config: read at every call for `_attn_implementation`, which may be changed on a built
            model; None always uses the written-out attention.
        qkv_bias: whether queries, keys and values have a bias.
        scale: the factor of the scores; None is the paper's 1 / sqrt(head_dim).

    Raises:
        ValueError: if the heads do not divide the width.
    """

    is_causal = False
    """Read by kernels: whether a mask left out stands for "the past only" or for "everything"."""

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        dropout: float = 0.0,
        config: PreTrainedConfig | None = None,
        qkv_bias: bool = True,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        if hidden_size % num_heads:
            raise ValueError(
                f"{num_heads} heads do not divide hidden size {hidden_size}: "
                f"choose a multiple of {num_heads} or another number of heads."
            )
        self.num_heads = num_heads
        self.head_dim = hidden_size // num_heads
        self.scale = self.head_dim**-0.5 if scale is None else scale
        self.dropout = dropout
        self.config = config
        self.query = nn.Linear(hidden_size, hidden_size, bias=qkv_bias)
        self.key = nn.Linear(hidden_size, hidden_size, bias=qkv_bias)
        self.value = nn.Linear(hidden_size, hidden_size, bias=qkv_bias)
        self.output = nn.Linear(hidden_size, hidden_size)

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        output_attentions: bool = False,
        context: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Mix every position with those it may see.

        Args:
            hidden_states: [batch, length, hidden_size].
            context: where keys and values come from [batch, keys, hidden_size]; None: from
                `hidden_states` itself, so that every position asks all of them.
            attention_mask: as the implementation in use takes it (`layers.masks` builds it); or
                the texts that stand one after the other in the one row of `hidden_states`.
            output_attentions: also return the weights where the kernel keeps none.
            **kwargs: handed to the attention implementation.

        Returns:
            The output [batch, length, hidden_size] and the weights [batch, heads, length, length]
            (None unless the implementation returns them or `output_attentions`).
        """
        # Query, key, value, as in HuggingFace's classes: the order decides in which gradients are
        # summed up, and another rounding grows to another model over many steps of training.
        query = self.split_heads(self.query(hidden_states))
        key, value = self.keys_and_values(hidden_states if context is None else context)
        return self.mix(query, key, value, attention_mask, output_attentions, **kwargs)

    def mix(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Any,
        output_attentions: bool,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Heads [batch, heads, length or keys, head_dim], mixed and put together; as `forward`."""
        heads, weights = self.attend(query, key, value, mask, **kwargs)
        if output_attentions and weights is None:
            # Fused kernels never build the weights: compute them beside the unchanged output.
            if isinstance(mask, PackedSequences):
                weights = packed_weights(query, key, mask, self.weigh)
            else:
                weights = self.weigh(query, key, mask)
        return self.output(heads.flatten(-2)), weights

    def weigh(self, query: Tensor, key: Tensor, mask: Any = None) -> Tensor:
        """`attention_weights` under any implementation's mask, and that of time in a decoder."""
        score_mask = to_score_mask(mask, query, key, self.is_causal)
        return attention_weights(query, key, score_mask, self.scale)

    def keys_and_values(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """[batch, keys, hidden_size] -> twice [batch, heads, keys, head_dim]."""
        return self.split_heads(self.key(context)), self.split_heads(self.value(context))

    def split_heads(self, projected: Tensor) -> Tensor:
        """[batch, length, heads * head_dim] -> [batch, heads, length, head_dim]."""
        return projected.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None]:
        """The implementation in use: output [batch, queries, heads, head_dim] and weights."""
        attention, implementation = scratch_attention, "scratch"
        if self.config is not None:
            implementation = self.config._attn_implementation
            attention = ALL_ATTENTION_FUNCTIONS.get_interface(implementation, scratch_attention)
        kwargs |= {"dropout": self.dropout if self.training else 0.0, "scaling": self.scale}
        if isinstance(mask, PackedSequences):
            # Of transformers' functions SDPA alone puts a text in order without a mask.
            kwargs["needs_order"] = self.is_causal and implementation != "sdpa"
            return packed_attention(attention, self, query, key, value, mask, **kwargs), None
        return attention(self, query, key, value, mask, **kwargs)
