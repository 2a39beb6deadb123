"""RoBERTa: BERT with positions that skip padding, and another classifier (arXiv:1907.11692).

Only what differs from `scratch_models.models.bert` stands here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import RobertaConfig
from transformers.activations import gelu
from transformers.modeling_outputs import BaseModelOutputWithPooling, SequenceClassifierOutput
from transformers.utils.generic import can_return_tuple

from scratch_models.layers.embeddings import TokenPositionSegmentEmbeddings
from scratch_models.layers.packing import PackedSequences
from scratch_models.layers.positions import LearnedPositions
from scratch_models.models.bert.modeling import (
    MaskedLMHead,
    ScratchBertForMaskedLM,
    ScratchBertForQuestionAnswering,
    ScratchBertForTokenClassification,
    ScratchBertModel,
    ScratchBertPreTrainedModel,
    build_norm,
    classifier_dropout,
)
from scratch_models.models.roberta import mapping  # noqa: F401  (registers the name table)


class RobertaPositions(LearnedPositions):
    """Learned positions, of which the first belong to padding: text begins at padding_idx + 1."""

    def of_tokens(self, input_ids: Tensor) -> Tensor:
        """The position of every token: real ones are counted, padding stays at padding_idx.

        Args:
            input_ids: [batch, length]; `padding_idx` is padding wherever it stands.

        Returns:
            [batch, length].

        Raises:
            ValueError: for more tokens than there are positions for text.
        """
        self.check(input_ids.shape[1])
        real = torch.ne(input_ids, self.padding_idx or 0).long()
        return real.cumsum(dim=1) * real + int(self.padding_idx or 0)

    def of_vectors(self, length: int) -> Tensor:
        """Positions [1, length] where no token ids tell padding: all are taken for real."""
        self.check(length)
        first = int(self.padding_idx or 0) + 1
        return torch.arange(first, first + length, device=self.weight.device)[None]

    def check(self, length: int) -> None:
        """Raise ValueError where a text is longer than the positions for text."""
        usable = self.num_embeddings - int(self.padding_idx or 0) - 1
        if length > usable:
            raise ValueError(
                f"the input has {length} tokens but the model has positions for {usable} only "
                f"({self.num_embeddings} less those up to pad_token_id {self.padding_idx}): "
                f"truncate to {usable} tokens."
            )


def build_roberta_embeddings(config: RobertaConfig) -> TokenPositionSegmentEmbeddings:
    """BERT's input representation with RoBERTa's positions."""
    size = config.hidden_size
    token = nn.Embedding(config.vocab_size, size, padding_idx=config.pad_token_id)
    segment = nn.Embedding(config.type_vocab_size, size)
    norm = build_norm(config)
    position = RobertaPositions(
        config.max_position_embeddings, size, padding_idx=config.pad_token_id
    )
    embeddings = TokenPositionSegmentEmbeddings(
        token, position, segment, norm, config.hidden_dropout_prob
    )
    # Last of all, as in HuggingFace's model: fresh weights are drawn in the order of the modules.
    del embeddings.position
    embeddings.position = position
    return embeddings


class FirstTokenClassifier(nn.Module):
    """W_2 tanh(W_1 h_<s> + b_1) + b_2: two layers on the first token, with dropout before each."""

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(classifier_dropout(config))
        self.output = nn.Linear(config.hidden_size, config.num_labels)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[batch, length, hidden_size] -> [batch, labels]."""
        first = self.dropout(hidden_states[:, 0])
        return self.output(self.dropout(torch.tanh(self.dense(first))))


class ScratchRobertaPreTrainedModel(ScratchBertPreTrainedModel):
    """What all RoBERTa classes share."""

    config: RobertaConfig
    config_class = RobertaConfig
    base_model_prefix = "roberta"


class ScratchRobertaModel(ScratchRobertaPreTrainedModel, ScratchBertModel):
    """The encoder: hidden states of every token and a pooled vector; arguments as BERT's."""

    huggingface_class = "RobertaModel"
    build_embeddings = staticmethod(build_roberta_embeddings)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        first_token_only: bool = False,
        sequence_lengths: Sequence[int] | Tensor | None = None,
        **kwargs: Any,
    ) -> BaseModelOutputWithPooling:
        """As `ScratchBertModel`, but for `position_ids` [1 or batch, length]: None counts tokens
        from pad_token_id + 1 and leaves padding out; numbers from 0 as BERT's are wrong here.

        Raises:
            ValueError: for more than max_position_embeddings - pad_token_id - 1 tokens.
        """
        positions: Any = self.embeddings.position
        if sequence_lengths is not None:
            pass  # counted anew in every text
        elif position_ids is None and input_ids is not None:
            position_ids = positions.of_tokens(input_ids)
        elif position_ids is None and inputs_embeds is not None:
            position_ids = positions.of_vectors(inputs_embeds.shape[1])
        return super().forward(
            input_ids,
            attention_mask,
            token_type_ids,
            position_ids,
            inputs_embeds,
            first_token_only,
            sequence_lengths,
            **kwargs,
        )

    def _packed_positions(self, packed: PackedSequences, device: torch.device) -> Tensor:
        positions: Any = self.embeddings.position
        positions.check(max(packed.keys, default=0))
        return packed.positions(device) + int(positions.padding_idx or 0) + 1


class RobertaMaskedLMHead(MaskedLMHead):
    """BERT's, always with GELU."""

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__(config)
        self.activation = gelu


# The heads below are BERT's on another body: their __init__ replaces that of BERT's head.


class ScratchRobertaForMaskedLM(ScratchRobertaPreTrainedModel, ScratchBertForMaskedLM):
    """RoBERTa that fills in masked tokens."""

    huggingface_class = "RobertaForMaskedLM"
    _tied_weights_keys = {  # noqa: RUF012
        "masked_lm_head.decoder.weight": "roberta.embeddings.token.weight",
        "masked_lm_head.decoder.bias": "masked_lm_head.bias",
    }

    def __init__(self, config: RobertaConfig) -> None:
        ScratchRobertaPreTrainedModel.__init__(self, config)
        self.roberta = ScratchRobertaModel(config, add_pooling_layer=False)
        self.masked_lm_head = RobertaMaskedLMHead(config)
        self.post_init()


class ScratchRobertaForTokenClassification(
    ScratchRobertaPreTrainedModel, ScratchBertForTokenClassification
):
    """RoBERTa that labels every token."""

    huggingface_class = "RobertaForTokenClassification"

    def __init__(self, config: RobertaConfig) -> None:
        ScratchRobertaPreTrainedModel.__init__(self, config)
        self.num_labels = config.num_labels
        self.roberta = ScratchRobertaModel(config, add_pooling_layer=False)
        self.dropout = nn.Dropout(classifier_dropout(config))
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()


class ScratchRobertaForQuestionAnswering(
    ScratchRobertaPreTrainedModel, ScratchBertForQuestionAnswering
):
    """RoBERTa that marks where the answer starts and ends."""

    huggingface_class = "RobertaForQuestionAnswering"

    def __init__(self, config: RobertaConfig) -> None:
        ScratchRobertaPreTrainedModel.__init__(self, config)
        self.num_labels = config.num_labels
        self.roberta = ScratchRobertaModel(config, add_pooling_layer=False)
        self.qa_outputs = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()


class ScratchRobertaForSequenceClassification(ScratchRobertaPreTrainedModel):
    """RoBERTa that labels whole sequences from its first token."""

    huggingface_class = "RobertaForSequenceClassification"

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.roberta = ScratchRobertaModel(config, add_pooling_layer=False)
        self.classifier = FirstTokenClassifier(config)
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
        """Arguments as `ScratchRobertaModel`; labels [batch], or [batch, labels] for several.

        Returns `logits` [batch, labels] and, with labels, the mean `loss`.
        """
        outputs = self.roberta(
            input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            first_token_only=True,
            return_dict=True,
            **kwargs,
        )
        logits = self.classifier(outputs.last_hidden_state)
        loss = None
        if labels is not None:
            loss = self.loss_function(labels, logits, self.config)
        return SequenceClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )
