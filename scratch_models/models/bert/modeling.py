"""BERT: a bidirectional Transformer encoder with a head for every task (arXiv:1810.04805).

Built from `scratch_models.layers` after HuggingFace's `BertConfig`; equal to HuggingFace's
classes of the same names without `Scratch` in every value and gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig
from transformers import initialization as init
from transformers.modeling_outputs import (
    BaseModelOutputWithPooling,
    MaskedLMOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.models.bert.modeling_bert import BertForPreTrainingOutput
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import capture_outputs

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.layers.activations import activation
from scratch_models.layers.attention import MultiHeadAttention
from scratch_models.layers.embeddings import TokenPositionSegmentEmbeddings
from scratch_models.layers.feed_forward import FeedForward
from scratch_models.layers.masks import bidirectional_mask
from scratch_models.layers.packing import PackedSequences, find_packing, take_packed
from scratch_models.layers.places import at_places
from scratch_models.layers.positions import LearnedPositions, check_length
from scratch_models.layers.stack import EncoderLayer, EncoderStack, post_norm
from scratch_models.models.bert import mapping  # noqa: F401  (registers the name table)


def build_norm(config: BertConfig) -> nn.LayerNorm:
    """A layer norm with the checkpoint's own epsilon."""
    return nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)


def build_embeddings(config: BertConfig) -> TokenPositionSegmentEmbeddings:
    """The input representation (§3, figure 2)."""
    size = config.hidden_size
    return TokenPositionSegmentEmbeddings(
        token=nn.Embedding(config.vocab_size, size, padding_idx=config.pad_token_id),
        position=LearnedPositions(config.max_position_embeddings, size),
        segment=nn.Embedding(config.type_vocab_size, size),
        norm=build_norm(config),
        dropout=config.hidden_dropout_prob,
    )


def build_layer(config: BertConfig) -> EncoderLayer:
    """One Transformer block (§3, "Model Architecture")."""
    return EncoderLayer(
        attention=MultiHeadAttention(
            config.hidden_size,
            config.num_attention_heads,
            dropout=config.attention_probs_dropout_prob,
            config=config,
        ),
        attention_norm=build_norm(config),
        feed_forward=FeedForward(
            config.hidden_size, config.intermediate_size, activation(config.hidden_act)
        ),
        feed_forward_norm=build_norm(config),
        dropout=config.hidden_dropout_prob,
        residual=post_norm,
    )


class _Inputs(NamedTuple):
    """What the embeddings are made of, in the order they take it."""

    input_ids: Tensor | None
    token_type_ids: Tensor | None
    position_ids: Tensor | None
    inputs_embeds: Tensor | None


class Pooler(nn.Module):
    """tanh(W h_[CLS] + b): the sequence as one vector, read from its first token (§3)."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[batch, length, hidden_size] -> [batch, hidden_size]."""
        return torch.tanh(self.dense(hidden_states[:, 0]))


class MaskedLMHead(nn.Module):
    """Scores of every vocabulary entry at every position (§3.1, task #1).

    The decoder's matrix is the token embedding; `bias` is the one weight a vocabulary entry has for
    output only, kept under its own name beside the decoder because checkpoints do.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = activation(config.hidden_act)
        self.norm = build_norm(config)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[batch, length, hidden_size] -> [batch, length, vocab_size]."""
        return self.decoder(self.norm(self.activation(self.dense(hidden_states))))


class ScratchBertPreTrainedModel(ScratchPreTrainedModel):
    """What all BERT classes share."""

    config: BertConfig
    config_class = BertConfig
    base_model_prefix = "bert"
    can_pack = True
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _no_split_modules: ClassVar[list[str]] = ["TokenPositionSegmentEmbeddings", "EncoderLayer"]
    _can_record_outputs: ClassVar[dict[str, Any]] = {
        "hidden_states": EncoderLayer,
        "attentions": MultiHeadAttention,
    }
    # Old checkpoints hold the numbers 0…511 under this name.
    _keys_to_ignore_on_load_unexpected: ClassVar[list[str]] = [r"(^|\.)position_ids$"]

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, MaskedLMHead):
            init.zeros_(module.bias)


class ScratchBertModel(ScratchBertPreTrainedModel):
    """The encoder: hidden states of every token and a pooled vector.

    Raises:
        ValueError: for a config that makes a decoder of it.
    """

    huggingface_class = "BertModel"
    build_embeddings = staticmethod(build_embeddings)

    def __init__(self, config: BertConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config)
        if config.is_decoder or config.add_cross_attention:
            raise ValueError(
                "ScratchBertModel is an encoder; the config has is_decoder or add_cross_attention."
            )
        self.embeddings = self.build_embeddings(config)
        self.layers = EncoderStack([build_layer(config) for _ in range(config.num_hidden_layers)])
        self.pooler = Pooler(config.hidden_size) if add_pooling_layer else None
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The token embedding."""
        return self.embeddings.token

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """Replace the token embedding."""
        self.embeddings.token = value

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        first_token_only: bool = False,
        sequence_lengths: Sequence[int] | Tensor | None = None,
        labelled: Tensor | None = None,
        **kwargs: Any,
    ) -> BaseModelOutputWithPooling:
        """Encode a batch.

        Where `attention_mask` has padding, and `self.packing` is not "off", the layers see the real
        tokens only: the same outputs for them, and zeros for padding (HuggingFace's are numbers
        without a meaning). Dropout then draws other numbers than HuggingFace's class.

        Args:
            input_ids: [batch, length]; or `inputs_embeds` [batch, length, hidden_size].
            attention_mask: [batch, length] of any dtype, zero hides; 3-D and 4-D masks as in
                `scratch_models.layers.masks.bidirectional_mask`.
            token_type_ids: [batch, length], segment of each token; None is segment 0.
            position_ids: [1 or batch, length]; None counts from 0.
            first_token_only: compute in the last layer only what `pooler_output` needs, where
                that changes nothing else; `last_hidden_state` is then [batch, 1, hidden_size].
            sequence_lengths: [batch] tokens of each text, for texts that stand one after the other
                in `input_ids` [1, tokens] without padding or mask; what comes out is packed
                likewise, but for `pooler_output` [batch, hidden_size].
            labelled: [batch, length], the labels of a head, -100 where none is: a label on padding
                makes its output matter.
            **kwargs: `output_hidden_states`, `output_attentions` (real weights under every
                attention implementation), `return_dict`.

        Returns:
            `last_hidden_state` [batch, length, hidden_size], `pooler_output` [batch, hidden_size].

        Raises:
            ValueError: for more tokens than `config.max_position_embeddings`, a mask that does not
                fit, or lengths that do not.
        """
        inputs = _Inputs(input_ids, token_type_ids, position_ids, inputs_embeds)
        if sequence_lengths is not None:
            packed: PackedSequences | None
            packed, inputs = self._take_packed(sequence_lengths, attention_mask, inputs)
            return self._encode(packed, inputs, first_token_only, **kwargs)
        packed = find_packing(
            self.config,
            attention_mask,
            self.packing,
            first_token_matters=first_token_only or self.pooler is not None,
            labelled=labelled,
        )
        if packed is None:
            return self._encode(attention_mask, inputs, first_token_only, **kwargs)
        outputs = self._encode(packed, self._pack(packed, inputs), first_token_only, **kwargs)
        return packed.pad_outputs(outputs)

    @capture_outputs
    def _encode(
        self,
        attention_mask: Tensor | PackedSequences | None,
        inputs: _Inputs,
        first_token_only: bool,
        **kwargs: Any,
    ) -> BaseModelOutputWithPooling:
        kwargs.setdefault("output_attentions", self.config.output_attentions)
        hidden_states = self.embeddings(*inputs)
        packed: PackedSequences | None = None
        if isinstance(attention_mask, PackedSequences):
            packed = mask = attention_mask
        else:
            mask = bidirectional_mask(self.config, hidden_states, attention_mask)
        first_only = first_token_only and self.layers.first_token_suffices(
            self.config, mask, **kwargs
        )
        hidden_states = self.layers(hidden_states, mask, first_token_only=first_only, **kwargs)
        first = hidden_states
        if packed is not None:
            first = packed.rows_of_first(first if first_only else packed.first(first))
        pooled = self.pooler(first) if self.pooler is not None else None
        return BaseModelOutputWithPooling(
            last_hidden_state=first if first_only else hidden_states, pooler_output=pooled
        )

    def _pack(self, packed: PackedSequences, inputs: _Inputs) -> _Inputs:
        """What stands at the real tokens."""
        tokens = inputs.input_ids if inputs.inputs_embeds is None else inputs.inputs_embeds
        if tokens is None or tokens.shape[:2] != packed.shape:
            return inputs  # their mistake is told where they are embedded
        if inputs.position_ids is None:
            position_ids = self.embeddings.position.after(0, tokens.shape[1], tokens.device)
            inputs = inputs._replace(position_ids=position_ids)
        return _Inputs(*(None if part is None else packed.pack(part) for part in inputs))

    def _take_packed(
        self, lengths: Sequence[int] | Tensor, attention_mask: Any, inputs: _Inputs
    ) -> tuple[PackedSequences, _Inputs]:
        """Texts that come packed, with positions that start anew in each."""
        tokens = inputs.input_ids if inputs.inputs_embeds is None else inputs.inputs_embeds
        packed = take_packed(lengths, tokens, attention_mask)
        if inputs.position_ids is None and tokens is not None:
            inputs = inputs._replace(position_ids=self._packed_positions(packed, tokens.device))
        return packed, inputs

    def _packed_positions(self, packed: PackedSequences, device: torch.device) -> Tensor:
        check_length(max(packed.keys, default=0), self.config.max_position_embeddings)
        return packed.positions(device)


class ScratchBertForMaskedLM(ScratchBertPreTrainedModel):
    """BERT that fills in masked tokens (§3.1, task #1)."""

    huggingface_class = "BertForMaskedLM"
    _tied_weights_keys: ClassVar[dict[str, str]] = {
        "masked_lm_head.decoder.weight": "bert.embeddings.token.weight",
        "masked_lm_head.decoder.bias": "masked_lm_head.bias",
    }

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = ScratchBertModel(config, add_pooling_layer=False)
        self.masked_lm_head = MaskedLMHead(config)
        self.post_init()

    def get_output_embeddings(self) -> nn.Linear:
        """The decoder, whose matrix is the token embedding."""
        return self.masked_lm_head.decoder

    def set_output_embeddings(self, value: nn.Linear) -> None:
        """Replace the decoder and, with it, the output bias."""
        self.masked_lm_head.decoder = value
        self.masked_lm_head.bias = value.bias

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        logits_at: Tensor | None = None,
        **kwargs: Any,
    ) -> MaskedLMOutput:
        """Arguments as `ScratchBertModel`; labels [batch, length], -100 where none is asked.

        Args:
            logits_at: [batch, length], true where logits are wanted: of other places none are
                computed, and their labels do not count. The head is a sixth of BERT-base's work,
                and pretraining asks at every seventh place.

        Returns `logits` [batch, length, vocab_size], or those of the places wanted, row by row
        [places, vocab_size]; and, with labels, the mean `loss`.
        """
        outputs = self.base_model(
            input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            labelled=labels,
            return_dict=True,
            **kwargs,
        )
        logits = self.masked_lm_head(at_places(outputs.last_hidden_state, logits_at))
        loss = None
        if labels is not None:
            labels = at_places(labels, logits_at)
            loss = self.loss_function(logits, labels, self.config.vocab_size)
        return MaskedLMOutput(
            loss=loss,
            logits=logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


class ScratchBertForPreTraining(ScratchBertPreTrainedModel):
    """BERT with both pretraining tasks: masked tokens and next sentence (§3.1)."""

    huggingface_class = "BertForPreTraining"
    _tied_weights_keys = ScratchBertForMaskedLM._tied_weights_keys

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = ScratchBertModel(config)
        self.masked_lm_head = MaskedLMHead(config)
        self.next_sentence_head = nn.Linear(config.hidden_size, 2)
        self.post_init()

    get_output_embeddings = ScratchBertForMaskedLM.get_output_embeddings
    set_output_embeddings = ScratchBertForMaskedLM.set_output_embeddings

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        next_sentence_label: Tensor | None = None,
        logits_at: Tensor | None = None,
        **kwargs: Any,
    ) -> BertForPreTrainingOutput:
        """Arguments as `ScratchBertModel`; labels [batch, length], next_sentence_label [batch].

        `logits_at` as in `ScratchBertForMaskedLM`.

        Returns `prediction_logits` [batch, length, vocab_size], `seq_relationship_logits`
        [batch, 2] (0: B follows A) and, with both labels, the sum of the two mean losses.
        """
        outputs = self.base_model(
            input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            labelled=labels,
            return_dict=True,
            **kwargs,
        )
        token_logits = self.masked_lm_head(at_places(outputs.last_hidden_state, logits_at))
        sentence_logits = self.next_sentence_head(outputs.pooler_output)
        loss = None
        if labels is not None and next_sentence_label is not None:
            asked = at_places(labels, logits_at).flatten()
            masked_lm_loss = F.cross_entropy(token_logits.flatten(0, -2), asked)
            next_sentence_loss = F.cross_entropy(sentence_logits, next_sentence_label.flatten())
            loss = masked_lm_loss + next_sentence_loss
        return BertForPreTrainingOutput(
            loss=loss,
            prediction_logits=token_logits,
            seq_relationship_logits=sentence_logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


class ScratchBertForSequenceClassification(ScratchBertPreTrainedModel):
    """BERT that labels whole sequences from the pooled [CLS] vector (§4.1)."""

    huggingface_class = "BertForSequenceClassification"

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.bert = ScratchBertModel(config)
        self.dropout = nn.Dropout(classifier_dropout(config))
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        """Arguments as `ScratchBertModel`; labels [batch], or [batch, labels] for several at once.

        `config.problem_type` chooses the loss (regression, single_label_classification,
        multi_label_classification); unset, it follows from the labels as in transformers.

        Returns `logits` [batch, labels] and, with labels, the mean `loss`.
        """
        outputs = self.base_model(
            input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            first_token_only=True,
            return_dict=True,
            **kwargs,
        )
        logits = self.classifier(self.dropout(outputs.pooler_output))
        loss = None
        if labels is not None:
            loss = self.loss_function(labels, logits, self.config)
        return SequenceClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


class ScratchBertForTokenClassification(ScratchBertPreTrainedModel):
    """BERT that labels every token (§5.3)."""

    huggingface_class = "BertForTokenClassification"

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.bert = ScratchBertModel(config, add_pooling_layer=False)
        self.dropout = nn.Dropout(classifier_dropout(config))
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> TokenClassifierOutput:
        """Arguments as `ScratchBertModel`; labels [batch, length], -100 where none is asked.

        Returns `logits` [batch, length, labels] and, with labels, the mean `loss`.
        """
        outputs = self.base_model(
            input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            labelled=labels,
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


class ScratchBertForQuestionAnswering(ScratchBertPreTrainedModel):
    """BERT that marks where the answer starts and ends (§4.2)."""

    huggingface_class = "BertForQuestionAnswering"

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.bert = ScratchBertModel(config, add_pooling_layer=False)
        self.qa_outputs = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        **kwargs: Any,
    ) -> QuestionAnsweringModelOutput:
        """Arguments as `ScratchBertModel`; start_positions and end_positions [batch].

        Returns `start_logits` and `end_logits` [batch, length] and, with positions, the mean of
        the two losses; positions outside the input are ignored. That loss compares the logits of
        padding, too, so with positions nothing is packed.
        """
        everywhere = None
        if start_positions is not None and attention_mask is not None:
            everywhere = torch.zeros_like(attention_mask)
        outputs = self.base_model(
            input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            labelled=everywhere,
            return_dict=True,
            **kwargs,
        )
        start_logits, end_logits = self.qa_outputs(outputs.last_hidden_state).unbind(dim=-1)
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = self.loss_function(start_logits, end_logits, start_positions, end_positions)
        return QuestionAnsweringModelOutput(
            loss=loss,
            start_logits=start_logits,
            end_logits=end_logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


def classifier_dropout(config: BertConfig) -> float:
    """The dropout before a classifier: its own if the config names one."""
    if config.classifier_dropout is not None:
        return config.classifier_dropout
    return config.hidden_dropout_prob
