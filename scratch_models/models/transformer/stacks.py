"""The two halves of figure 1: the encoder, the decoder, and what their layers are built of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    MarianConfig,
)
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
)
from transformers.utils.deprecation import deprecate_kwarg
from transformers.utils.generic import merge_with_config_defaults
from transformers.utils.output_capturing import capture_outputs

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.layers.activations import activation
from scratch_models.layers.attention import MultiHeadAttention
from scratch_models.layers.cached_attention import CausalSelfAttention, CrossAttention
from scratch_models.layers.feed_forward import FeedForward
from scratch_models.layers.masks import bidirectional_mask, causal_mask
from scratch_models.layers.positions import Encoding, SinusoidalPositions, sinusoids_in_halves
from scratch_models.layers.stack import DecoderLayer, EncoderLayer, post_norm
from scratch_models.models.transformer import mapping  # noqa: F401  (registers the name table)


class ScaledTokenPositionEmbeddings(nn.Module):
    """Token embeddings times a constant, plus positions (§3.4, §3.5), with dropout (§5.4).

    Args:
        token: one vector a vocabulary entry.
        position: vectors of positions.
        scale: sqrt(d_model) in the paper: positions would drown small embeddings otherwise.
        dropout: probability, on the sum.
    """

    def __init__(
        self, token: nn.Embedding, position: SinusoidalPositions, scale: float, dropout: float
    ) -> None:
        super().__init__()
        self.token = token
        self.position = position
        self.scale = scale
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> Tensor:
        """Embed tokens [batch, length], or add positions to vectors that stand for them.

        Args:
            input_ids: [batch, length]; exactly one of this and `inputs_embeds`.
            inputs_embeds: [batch, length, hidden_size], taken as they are (not scaled).
            position_ids: [1 or batch, length]; None counts from 0.

        Returns:
            [batch, length, hidden_size].

        Raises:
            ValueError: without or with two inputs.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError(
                "pass exactly one of token ids and embeddings: input_ids or inputs_embeds to the "
                "encoder, decoder_input_ids or decoder_inputs_embeds (or labels) to the decoder."
            )
        tokens = self.token(input_ids) * self.scale if inputs_embeds is None else inputs_embeds
        return self.dropout(tokens + self.position(tokens.shape[1], position_ids))


def build_embeddings(
    config: MarianConfig, vocab_size: int, encoding: Encoding
) -> ScaledTokenPositionEmbeddings:
    """The input of the encoder or the decoder (§3.4, §3.5)."""
    return ScaledTokenPositionEmbeddings(
        token=nn.Embedding(vocab_size, config.d_model, padding_idx=config.pad_token_id),
        position=SinusoidalPositions(config.max_position_embeddings, config.d_model, encoding),
        scale=math.sqrt(config.d_model) if config.scale_embedding else 1.0,
        dropout=config.dropout,
    )


def build_attention(
    kind: type[MultiHeadAttention], config: MarianConfig, heads: int, **kwargs: Any
) -> MultiHeadAttention:
    """One of the three uses of attention (§3.2.3)."""
    attention = kind(
        config.d_model, heads, dropout=config.attention_dropout, config=config, **kwargs
    )
    # Fresh weights are drawn in the order of registration; under a seed these are Marian's.
    for name in ("key", "value", "query", "output"):
        part = getattr(attention, name)
        delattr(attention, name)
        setattr(attention, name, part)
    return attention


def build_feed_forward(config: MarianConfig, inner_size: int) -> FeedForward:
    """The position-wise network (§3.3), with dropout after the activation too."""
    with_dropout = nn.Sequential(
        activation(config.activation_function), nn.Dropout(config.activation_dropout)
    )
    return FeedForward(config.d_model, inner_size, with_dropout)


def build_encoder_layer(config: MarianConfig) -> EncoderLayer:
    """One layer of the encoder (§3.1)."""
    heads = config.encoder_attention_heads
    return EncoderLayer(
        attention=build_attention(MultiHeadAttention, config, heads),
        attention_norm=nn.LayerNorm(config.d_model),
        feed_forward=build_feed_forward(config, config.encoder_ffn_dim),
        feed_forward_norm=nn.LayerNorm(config.d_model),
        dropout=config.dropout,
        residual=post_norm,
    )


def build_decoder_layer(config: MarianConfig, index: int) -> DecoderLayer:
    """One layer of the decoder (§3.1); its index is where the cache keeps keys and values."""
    heads = config.decoder_attention_heads
    return DecoderLayer(
        attention=build_attention(CausalSelfAttention, config, heads, layer_index=index),
        attention_norm=nn.LayerNorm(config.d_model),
        cross_attention=build_attention(CrossAttention, config, heads, layer_index=index),
        cross_attention_norm=nn.LayerNorm(config.d_model),
        feed_forward=build_feed_forward(config, config.decoder_ffn_dim),
        feed_forward_norm=nn.LayerNorm(config.d_model),
        dropout=config.dropout,
        residual=post_norm,
    )


class ScratchTransformerPreTrainedModel(ScratchPreTrainedModel):
    """What all Transformer classes share."""

    config: MarianConfig
    config_class = MarianConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _can_compile_fullgraph = True
    _no_split_modules: ClassVar[list[str]] = ["EncoderLayer", "DecoderLayer"]

    def resize_token_embeddings(
        self,
        new_num_tokens: int | None = None,
        pad_to_multiple_of: int | None = None,
        mean_resizing: bool = True,
    ) -> nn.Embedding:
        """Resize the shared vocabulary; without sharing, the encoder's.

        Raises:
            ValueError: for embeddings that are shared but not tied: they are three tables, which
                HuggingFace's format cannot tell apart once they were resized as one.
        """
        if self.config.share_encoder_decoder_embeddings and not self.config.tie_word_embeddings:
            raise ValueError(
                "config has share_encoder_decoder_embeddings, but tie_word_embeddings is false: "
                "such embeddings cannot be resized. Tie them, or do not share them."
            )
        return super().resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)

    @staticmethod
    def encoding(positions: Tensor, dim: int) -> Tensor:
        """The position vectors: [...] -> [..., dim]."""
        return sinusoids_in_halves(positions, dim)


class ScratchTransformerEncoder(ScratchTransformerPreTrainedModel):
    """The left half of figure 1."""

    _can_record_outputs: ClassVar[dict[str, Any]] = {
        "hidden_states": EncoderLayer,
        "attentions": MultiHeadAttention,
    }

    def __init__(self, config: MarianConfig) -> None:
        super().__init__(config)
        self.embeddings = build_embeddings(config, config.vocab_size, self.encoding)
        self.layers = nn.ModuleList(
            build_encoder_layer(config) for _ in range(config.encoder_layers)
        )
        self.gradient_checkpointing = False
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The token embedding."""
        return self.embeddings.token

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """Replace the token embedding."""
        self.embeddings.token = value

    @capture_outputs
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **kwargs: Any,
    ) -> BaseModelOutput:
        """Source tokens [batch, length] -> `last_hidden_state` [batch, length, d_model].

        Args:
            input_ids: [batch, length]; or `inputs_embeds` [batch, length, d_model], not scaled.
            attention_mask: as in `scratch_models.layers.masks.bidirectional_mask`.
            **kwargs: `output_hidden_states`, `output_attentions`, `return_dict`.
        """
        kwargs.setdefault("output_attentions", self.config.output_attentions)
        hidden_states = self.embeddings(input_ids, inputs_embeds)
        mask = bidirectional_mask(self.config, hidden_states, attention_mask)
        for layer in surviving(self.layers, self.config.encoder_layerdrop):
            hidden_states = layer(hidden_states, mask, **kwargs)
        return BaseModelOutput(last_hidden_state=hidden_states)


class ScratchTransformerDecoder(ScratchTransformerPreTrainedModel):
    """The right half of figure 1, up to the last layer."""

    _can_record_outputs: ClassVar[dict[str, Any]] = {
        "hidden_states": DecoderLayer,
        "attentions": CausalSelfAttention,
        "cross_attentions": CrossAttention,
    }

    def __init__(self, config: MarianConfig) -> None:
        super().__init__(config)
        self.embeddings = build_embeddings(config, config.decoder_vocab_size, self.encoding)
        self.layers = nn.ModuleList(
            build_decoder_layer(config, index) for index in range(config.decoder_layers)
        )
        self.gradient_checkpointing = False
        self.post_init()

    get_input_embeddings = ScratchTransformerEncoder.get_input_embeddings
    set_input_embeddings = ScratchTransformerEncoder.set_input_embeddings

    @merge_with_config_defaults
    @capture_outputs
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Any = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Any,
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """Target tokens [batch, length] -> `last_hidden_state` [batch, length, d_model].

        Args:
            input_ids: [batch, length], with a cache the new tokens only; or `inputs_embeds`
                [batch, length, d_model], which are scaled as tokens are.
            attention_mask: as in `scratch_models.layers.masks.causal_mask`.
            encoder_hidden_states: what the encoder made [batch, source length, d_model].
            encoder_attention_mask: [batch, source length], zero hides.
            cache: keys and values of earlier steps.
            inputs_embeds: see `input_ids`.
            use_cache: make a cache where none is given; None is `config.use_cache`.
            **kwargs: `output_hidden_states`, `output_attentions`, `return_dict`.

        Raises:
            ValueError: without encoder states, or with a cache that has no place for them.
        """
        if encoder_hidden_states is None:
            raise ValueError("the decoder needs encoder_hidden_states to attend to.")
        if use_cache and cache is None:
            cache = EncoderDecoderCache(
                DynamicCache(config=self.config), DynamicCache(config=self.config)
            )
        check_cache(cache)
        kwargs.setdefault("output_attentions", self.config.output_attentions)
        if inputs_embeds is not None:
            inputs_embeds = inputs_embeds * self.embeddings.scale
        position_ids = new_positions(input_ids, inputs_embeds, cache)
        hidden_states = self.embeddings(input_ids, inputs_embeds, position_ids)
        own_cache = None if cache is None else cache.self_attention_cache
        mask = causal_mask(self.config, hidden_states, attention_mask, own_cache)
        encoder_mask = bidirectional_mask(
            self.config, hidden_states, encoder_attention_mask, encoder_hidden_states
        )
        for layer in surviving(self.layers, self.config.decoder_layerdrop):
            hidden_states = layer(
                hidden_states, mask, encoder_hidden_states, encoder_mask, cache=cache, **kwargs
            )
        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=hidden_states, cache=cache
        )


def surviving(layers: nn.ModuleList, drop_probability: float) -> Iterator[nn.Module]:
    """The layers of one pass: in training each is left out with a probability (LayerDrop).

    Fan et al. 2019, arXiv:1909.11556, §3.2. Drawn layer by layer, between the layers' own draws.
    """
    for layer in layers:
        if layers.training and drop_probability > 0 and torch.rand([]) < drop_probability:
            continue
        yield layer


def check_cache(cache: Any) -> None:
    """Raise ValueError for a cache without a place for the encoder's keys and values."""
    if cache is not None and not isinstance(cache, EncoderDecoderCache):
        raise ValueError(
            f"cache is a {type(cache).__name__}; a model with an encoder needs an "
            "EncoderDecoderCache(self_attention_cache, cross_attention_cache)."
        )


def new_positions(
    input_ids: Tensor | None, inputs_embeds: Tensor | None, cache: EncoderDecoderCache | None
) -> Tensor | None:
    """Positions [1, length] of tokens that come after those in the cache; None: from 0."""
    tokens = input_ids if inputs_embeds is None else inputs_embeds
    if cache is None or tokens is None:
        return None
    return torch.arange(tokens.shape[1], device=tokens.device)[None] + cache.get_seq_length()
