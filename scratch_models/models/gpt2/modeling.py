"""GPT-2: a Transformer decoder without encoder (Radford et al. 2019).

Built from `scratch_models.layers` after HuggingFace's `GPT2Config`; equal to HuggingFace's classes
of the same names without `Scratch` in every value and gradient. Sections are those of the paper of
2019, or of "Improving Language Understanding by Generative Pre-Training" where it says 2018.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import Cache, DynamicCache, GPT2Config
from transformers import initialization as init
from transformers.modeling_outputs import (
    BaseModelOutputWithPast,
    CausalLMOutputWithPast,
    SequenceClassifierOutputWithPast,
    TokenClassifierOutput,
)
from transformers.modeling_utils import slice_logits_to_keep
from transformers.utils.deprecation import deprecate_kwarg
from transformers.utils.generic import (
    can_return_tuple,
    maybe_autocast,
    merge_with_config_defaults,
)
from transformers.utils.output_capturing import capture_outputs

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.hub.generation import LimitedPositionsGenerationMixin
from scratch_models.layers.activations import activation
from scratch_models.layers.attention import attention_weights
from scratch_models.layers.cached_attention import CausalSelfAttention
from scratch_models.layers.feed_forward import FeedForward
from scratch_models.layers.masks import causal_mask
from scratch_models.layers.packing import PackedSequences, take_packed
from scratch_models.layers.places import at_places
from scratch_models.layers.positions import LearnedPositions, check_length
from scratch_models.layers.stack import EncoderLayer, EncoderStack, pre_norm
from scratch_models.layers.vocabulary_loss import next_token_loss
from scratch_models.models.gpt2 import mapping  # noqa: F401  (registers the name table)

renamed_cache = deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")


class UpcastCausalSelfAttention(CausalSelfAttention):
    """Scores and softmax in single precision, whatever the model's (`reorder_and_upcast_attn`).

    As in HuggingFace's class, under `attn_implementation="eager"` only.
    """

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor | None]:
        """The implementation in use: output [batch, queries, heads, head_dim] and weights."""
        if self.config is None or self.config._attn_implementation != "eager":
            return super().attend(query, key, value, mask, **kwargs)
        if isinstance(mask, PackedSequences):
            raise ValueError(
                "reorder_and_upcast_attn with eager attention does not take packed texts: use "
                "attn_implementation sdpa."
            )
        with maybe_autocast(query.device.type, enabled=False):
            weights = attention_weights(query.float(), key.float(), mask, self.scale)
        weights = F.dropout(weights.to(value.dtype), p=self.dropout, training=self.training)
        return (weights @ value).transpose(1, 2), weights


def build_norm(config: GPT2Config) -> nn.LayerNorm:
    """A layer norm with the checkpoint's own epsilon."""
    return nn.LayerNorm(config.hidden_size, eps=config.layer_norm_epsilon)


def build_layer(config: GPT2Config, layer_index: int) -> EncoderLayer:
    """One Transformer block, with the norm before each sublayer (§2.3)."""
    upcast = config.reorder_and_upcast_attn
    attention_class = UpcastCausalSelfAttention if upcast else CausalSelfAttention
    return EncoderLayer(
        attention=attention_class(
            config.hidden_size,
            config.num_attention_heads,
            dropout=config.attn_pdrop,
            config=config,
            scale=attention_scale(config, layer_index),
            layer_index=layer_index,
        ),
        attention_norm=build_norm(config),
        feed_forward=FeedForward(
            config.hidden_size, inner_size(config), activation(config.activation_function)
        ),
        feed_forward_norm=build_norm(config),
        dropout=config.resid_pdrop,
        residual=pre_norm,
    )


def attention_scale(config: GPT2Config, layer_index: int) -> float:
    """The factor of the scores: 1 / sqrt(d_k), and smaller in later layers where asked for."""
    head_dim = config.hidden_size // config.num_attention_heads
    scale = head_dim**-0.5 if config.scale_attn_weights else 1.0
    return scale / (layer_index + 1) if config.scale_attn_by_inverse_layer_idx else scale


def inner_size(config: GPT2Config) -> int:
    """Width inside the feed-forward part: four times the model's unless the config names one."""
    return 4 * config.hidden_size if config.n_inner is None else config.n_inner


class ScratchGPT2PreTrainedModel(ScratchPreTrainedModel):
    """What all GPT-2 classes share."""

    config: GPT2Config
    config_class = GPT2Config
    base_model_prefix = "transformer"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _can_compile_fullgraph = True
    _no_split_modules: ClassVar[list[str]] = ["EncoderLayer"]
    _can_record_outputs: ClassVar[dict[str, Any]] = {
        "hidden_states": EncoderLayer,
        "attentions": CausalSelfAttention,
    }
    # Old checkpoints hold their causal masks under these names.
    _keys_to_ignore_on_load_unexpected: ClassVar[list[str]] = [r"attn\.(masked_)?bias$"]


class ScratchGPT2Model(ScratchGPT2PreTrainedModel):
    """The decoder: hidden states of every token.

    Raises:
        ValueError: for a config with cross-attention.
    """

    huggingface_class = "GPT2Model"

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        if config.add_cross_attention:
            raise ValueError(
                "ScratchGPT2Model is a decoder without encoder, but the config has "
                "add_cross_attention: set it to False, or use HuggingFace's GPT2Model."
            )
        self.token = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position = LearnedPositions(config.max_position_embeddings, config.hidden_size)
        self.dropout = nn.Dropout(config.embd_pdrop)
        self.layers = EncoderStack([self._build_layer(i) for i in range(config.num_hidden_layers)])
        self.norm = build_norm(config)
        self.gradient_checkpointing = False
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The token embedding."""
        return self.token

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """Replace the token embedding."""
        self.token = value

    def _build_layer(self, layer_index: int) -> EncoderLayer:
        """`build_layer`, drawing the random numbers that HuggingFace's class draws.

        All weights are drawn again in `_init_weights`. How many numbers went before decides which
        they are, and so whether a seed means the same model on both sides.
        """
        with torch.random.fork_rng(devices=[]):
            layer = build_layer(self.config, layer_index)
        size, inner = self.config.hidden_size, inner_size(self.config)
        for shape in ((size, 3 * size), (size, size), (size, inner), (inner, size)):
            torch.empty(shape).normal_()
        return layer

    def _initialize_weights(self, module: nn.Module, is_custom_code: bool = False) -> None:
        # For code it does not know transformers passes over parts that have no weights themselves,
        # lest loaded ones be overwritten. `draw_weights` takes care of that.
        super()._initialize_weights(module)

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            return  # drawn with the part it belongs to
        super()._init_weights(module)
        std = self.config.initializer_range
        # One for every residual connection, of which a layer has two (§2.3).
        residual_std = std / (2 * self.config.num_hidden_layers) ** 0.5
        if isinstance(module, CausalSelfAttention):
            draw_weights([module.query, module.key, module.value], std)
            draw_weights([module.output], std)
            draw_weights([module.output], residual_std)
        elif isinstance(module, FeedForward):
            draw_weights([module.up], std)
            draw_weights([module.down], std)
            draw_weights([module.down], residual_std)

    @merge_with_config_defaults
    @capture_outputs
    @renamed_cache
    def forward(
        self,
        input_ids: Tensor | None = None,
        cache: Cache | None = None,
        attention_mask: Any = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        *,
        use_cache: bool | None = None,
        sequence_lengths: Sequence[int] | Tensor | None = None,
        **kwargs: Any,
    ) -> BaseModelOutputWithPast:
        """Read a batch of texts, or its continuation.

        Args:
            input_ids: [batch, length]; or `inputs_embeds` [batch, length, hidden_size]. With a
                cache the new tokens only.
            cache: keys and values of earlier tokens; those of the new ones are added.
            attention_mask: [batch, past + length] of any dtype, zero hides; other masks as in
                `scratch_models.layers.masks.causal_mask`.
            token_type_ids: [batch, length], tokens whose embeddings are added.
            position_ids: [1 or batch, length]; None goes on counting from the cache, padding
                included.
            use_cache: whether to return a cache; None leaves it to the config.
            sequence_lengths: [texts] tokens of each text, for texts that stand one after the other
                in `input_ids` [1, tokens], without mask or cache: none sees another, and positions
                start anew in each.
            **kwargs: `output_hidden_states`, `output_attentions` (real weights under every
                attention implementation), `return_dict`.

        Returns:
            `last_hidden_state` [batch, length, hidden_size] and the `cache`.

        Raises:
            ValueError: for more tokens than `config.n_positions` (those in the cache included), a
                mask that does not fit, without or with two inputs, or for the output of an encoder.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("pass exactly one of input_ids and inputs_embeds.")
        if kwargs.pop("encoder_hidden_states", None) is not None:
            raise ValueError("encoder_hidden_states was passed to a decoder without encoder.")
        if input_ids is not None:
            self.warn_if_padding_and_no_attention_mask(input_ids, attention_mask)
        kwargs.setdefault("output_attentions", self.config.output_attentions)
        tokens = self.token(input_ids) if inputs_embeds is None else inputs_embeds
        packed = None
        if sequence_lengths is not None:
            packed, use_cache = self._take_packed(sequence_lengths, tokens, attention_mask, cache)
            if position_ids is None:
                position_ids = packed.positions(tokens.device)
        if use_cache and cache is None:
            cache = DynamicCache(config=self.config)
        length, past = tokens.shape[1], 0 if cache is None else cache.get_seq_length()
        if position_ids is None:
            position_ids = self.position.after(past, length, tokens.device)
        embedded = tokens + self.position(length, position_ids)
        if token_type_ids is not None:
            embedded = embedded + self.token(token_type_ids)
        mask = packed or causal_mask(self.config, tokens, attention_mask, cache, position_ids)
        hidden_states = self.layers(
            self.dropout(embedded), mask, cache=cache, position_ids=position_ids, **kwargs
        )
        return BaseModelOutputWithPast(
            last_hidden_state=self.norm(hidden_states), cache=cache if use_cache else None
        )

    def _take_packed(
        self,
        lengths: Sequence[int] | Tensor,
        tokens: Tensor,
        attention_mask: Any,
        cache: Cache | None,
    ) -> tuple[PackedSequences, bool]:
        """Texts that come packed, and that nothing of them is remembered."""
        if cache is not None:
            raise ValueError("sequence_lengths come without a cache: packed texts are not gone on.")
        packed = take_packed(lengths, tokens, attention_mask)
        check_length(max(packed.keys, default=0), self.config.max_position_embeddings)
        return packed, False


def draw_weights(linears: Sequence[nn.Linear], std: float) -> None:
    """Fresh weights for layers that are one matrix [inputs, outputs] in HuggingFace's class.

    Drawn as that matrix, so that the same seed gives the same model; weights that were read from a
    checkpoint stay.
    """
    if all(getattr(linear.weight, "_is_hf_initialized", False) for linear in linears):
        return
    outputs, inputs = linears[0].weight.shape
    matrix = linears[0].weight.new_empty(inputs, len(linears) * outputs).normal_(std=std)
    for linear, columns in zip(linears, matrix.split(outputs, dim=1), strict=True):
        init.copy_(linear.weight, columns.T)
        init.zeros_(linear.bias)


class ScratchGPT2LMHeadModel(ScratchGPT2PreTrainedModel, LimitedPositionsGenerationMixin):
    """GPT-2 that predicts the next token; its head is the token embedding (2018, §3.1)."""

    huggingface_class = "GPT2LMHeadModel"
    # Its loss divides by `num_items_in_batch`, so Trainer accumulates batches of any lengths right.
    accepts_loss_kwargs = True
    _tied_weights_keys: ClassVar[dict[str, str]] = {"lm_head.weight": "transformer.token.weight"}

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.transformer = ScratchGPT2Model(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        # Else transformers guesses it, rightly, with a warning that breaks a compiled graph.
        self.loss_type = "ForCausalLM"
        self.post_init()

    @can_return_tuple
    @renamed_cache
    def forward(
        self,
        input_ids: Tensor | None = None,
        cache: Cache | None = None,
        attention_mask: Any = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        *,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        logits_at: Tensor | None = None,
        loss_only: bool = False,
        **kwargs: Any,
    ) -> CausalLMOutputWithPast:
        """Arguments as `ScratchGPT2Model`, and:

        Args:
            labels: [batch, length], usually `input_ids` itself: they are shifted here; -100 where
                none is asked.
            logits_to_keep: compute the logits of the last so many positions (0: of all), or of
                those of an index tensor.
            logits_at: [batch, length], true where logits are wanted: those of the places wanted are
                returned, row by row [places, vocab_size]. Not together with labels.
            loss_only: with labels: return no logits, only those of labels being computed; in single
                precision, and with a plain head, never all of them at once. What comes out can be
                gone back over once.
            **kwargs: also for the loss (`num_items_in_batch`: divide the sum by that).

        Returns:
            `logits` [batch, kept, vocab_size], the `cache` and, with labels, the mean `loss`.
        """
        outputs = self.transformer(
            input_ids,
            cache=cache,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            use_cache=use_cache,
            return_dict=True,
            **kwargs,
        )
        if logits_at is not None and labels is not None:
            raise ValueError("pass labels or logits_at: the loss shifts labels by one place.")
        if loss_only and labels is not None:
            count = kwargs.get("num_items_in_batch")
            return CausalLMOutputWithPast(
                loss=next_token_loss(outputs.last_hidden_state, self.lm_head, labels, count),
                cache=outputs.cache,
                hidden_states=outputs.hidden_states,
                attentions=outputs.attentions,
            )
        if logits_at is not None:
            states = at_places(outputs.last_hidden_state, logits_at)
        else:
            states = slice_logits_to_keep(outputs.last_hidden_state, logits_to_keep)
        logits = self.lm_head(states)
        loss = None
        if labels is not None:
            loss = self.loss_function(logits, labels, vocab_size=self.config.vocab_size, **kwargs)
        return CausalLMOutputWithPast(
            loss=loss,
            logits=logits,
            cache=outputs.cache,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


class ScratchGPT2ForSequenceClassification(ScratchGPT2PreTrainedModel):
    """GPT-2 that classifies a text by its last token, which has seen all others (2018, §3.2)."""

    huggingface_class = "GPT2ForSequenceClassification"

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.transformer = ScratchGPT2Model(config)
        self.score = nn.Linear(config.hidden_size, config.num_labels, bias=False)
        self.post_init()

    @can_return_tuple
    @renamed_cache
    def forward(
        self,
        input_ids: Tensor | None = None,
        cache: Cache | None = None,
        attention_mask: Any = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutputWithPast:
        """Arguments as `ScratchGPT2Model`; labels [batch], or [batch, labels] for several at once.

        The last token is the last that is not `config.pad_token_id`, whatever the attention mask.
        `config.problem_type` chooses the loss (regression, single_label_classification,
        multi_label_classification); unset, it follows from the labels as in transformers.

        Returns:
            `logits` [batch, labels], the `cache` and, with labels, the mean `loss`.

        Raises:
            ValueError: for several texts without padding token.
        """
        outputs = self.transformer(
            input_ids,
            cache=cache,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            use_cache=use_cache,
            return_dict=True,
            **kwargs,
        )
        hidden_states = outputs.last_hidden_state
        last = self.last_token(input_ids, hidden_states.shape[0])
        rows = torch.arange(hidden_states.shape[0], device=hidden_states.device)
        logits = self.score(hidden_states[rows, last])
        loss = None
        if labels is not None:
            loss = self.loss_function(labels, logits, self.config)
        return SequenceClassifierOutputWithPast(
            loss=loss,
            logits=logits,
            cache=outputs.cache,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )

    def last_token(self, input_ids: Tensor | None, batch: int) -> Tensor | int:
        """Index of the last token of every text, [batch]: padding may stand on either side."""
        pad = self.config.pad_token_id
        if pad is None and batch > 1:
            raise ValueError(
                f"{batch} texts in a batch but no padding token (config.pad_token_id): where each "
                "ends is not known. Set model.config.pad_token_id = tokenizer.pad_token_id (for a "
                "tokenizer without one: tokenizer.pad_token = tokenizer.eos_token first), or pass "
                "one text at a time."
            )
        if pad is None:
            return -1
        if input_ids is None:
            warnings.warn(
                "padding cannot be seen in inputs_embeds: the last position of every row counts as "
                "its last token. Pad on the left, or pass input_ids.",
                stacklevel=2,
            )
            return -1
        indices = torch.arange(input_ids.shape[1], device=input_ids.device)
        return (indices * (input_ids != pad)).argmax(dim=-1)


class ScratchGPT2ForTokenClassification(ScratchGPT2PreTrainedModel):
    """GPT-2 that labels every token, knowing those before it."""

    huggingface_class = "GPT2ForTokenClassification"

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.transformer = ScratchGPT2Model(config)
        self.dropout = nn.Dropout(classifier_dropout(config))
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    @renamed_cache
    def forward(
        self,
        input_ids: Tensor | None = None,
        cache: Cache | None = None,
        attention_mask: Any = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Any,
    ) -> TokenClassifierOutput:
        """Arguments as `ScratchGPT2Model`; labels [batch, length], -100 where none is asked.

        Returns `logits` [batch, length, labels] and, with labels, the mean `loss`.
        """
        outputs = self.transformer(
            input_ids,
            cache=cache,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            use_cache=use_cache,
            return_dict=True,
            **kwargs,
        )
        logits = self.classifier(self.dropout(outputs.last_hidden_state))
        loss = None
        if labels is not None:
            loss = self.loss_function(logits, labels, self.config)
        return TokenClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


def classifier_dropout(config: GPT2Config) -> float:
    """The dropout before a classifier, for which the config class has no field of its own."""
    for name in ("classifier_dropout", "hidden_dropout"):
        if getattr(config, name, None) is not None:
            return getattr(config, name)
    return 0.1
