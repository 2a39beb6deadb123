"""Attention of decoders: to the past, remembered from step to step, and to the encoder's output.

"Attention Is All You Need", §3.2.3. Without the memory a decoder would compute the keys and values
of all earlier tokens again for every new one. It is transformers' `Cache`, so that `generate()` can
bring any of its kinds (growing, of fixed size, re-ordered for beams).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers import Cache, EncoderDecoderCache

from scratch_models.layers.attention import MultiHeadAttention


class CausalSelfAttention(MultiHeadAttention):
    """Every position attends to itself and to those before it; arguments as `MultiHeadAttention`.

    Args:
        layer_index: number of the layer, under which its keys and values are remembered.
    """

    is_causal = True

    def __init__(self, *args: Any, layer_index: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.layer_idx = layer_index  # the name transformers looks for

    def forward(  # type: ignore[override]
        self,
        hidden_states: Tensor,
        attention_mask: Any = None,
        output_attentions: bool = False,
        cache: Cache | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """[batch, length, hidden_size] -> the same, and weights [batch, heads, length, keys].

        Args:
            hidden_states: the new tokens.
            attention_mask: from `layers.masks.causal_mask`.
            output_attentions: also return the weights where the kernel keeps none.
            cache: keys and values of earlier tokens; those of the new ones are added to it.
            **kwargs: handed to the attention implementation.
        """
        query = self.split_heads(self.query(hidden_states))
        key, value = self.keys_and_values(hidden_states)
        if cache is not None:
            if isinstance(cache, EncoderDecoderCache):
                cache = cache.self_attention_cache
            key, value = cache.update(key, value, self.layer_idx)
        return self.mix(query, key, value, attention_mask, output_attentions, **kwargs)


class CrossAttention(MultiHeadAttention):
    """Every position of the decoder attends to all of the encoder's; arguments as its parent.

    Args:
        layer_index: number of the layer, under which its keys and values are remembered.
    """

    def __init__(self, *args: Any, layer_index: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.layer_idx = layer_index

    def forward(  # type: ignore[override]
        self,
        hidden_states: Tensor,
        context: Tensor,
        attention_mask: Any = None,
        output_attentions: bool = False,
        cache: EncoderDecoderCache | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """[batch, length, hidden_size] -> the same, and weights [batch, heads, length, keys].

        Args:
            hidden_states: the decoder's.
            context: the encoder's output [batch, keys, hidden_size]; looked at in the first step
                only where there is a cache.
            attention_mask: from `layers.masks.bidirectional_mask`.
            output_attentions: also return the weights where the kernel keeps none.
            cache: keys and values of the encoder's output, once computed.
            **kwargs: handed to the attention implementation.
        """
        query = self.split_heads(self.query(hidden_states))
        key, value = self.remembered(context, cache)
        return self.mix(query, key, value, attention_mask, output_attentions, **kwargs)

    def remembered(
        self, context: Tensor, cache: EncoderDecoderCache | None
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of the encoder's output: the same in every step, so computed once."""
        if cache is None:
            return self.keys_and_values(context)
        layer = self.layer_idx
        if not cache.is_updated.get(layer):
            key, value = self.keys_and_values(context)
            cache.is_updated[layer] = True
            return cache.cross_attention_cache.update(key, value, layer)
        stored = cache.cross_attention_cache.layers[layer]
        return stored.keys, stored.values
