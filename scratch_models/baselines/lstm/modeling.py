"""A bidirectional LSTM classifier: what texts were classified with before Transformers.

Hochreiter and Schmidhuber 1997 (the cell), Graves and Schmidhuber 2005 (both directions), max
pooling over time as in Conneau et al. 2017 (arXiv:1705.02364, §3.2.2).
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import PreTrainedConfig
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.utils.generic import can_return_tuple

from scratch_models.hub.base import ScratchPreTrainedModel


class ScratchLSTMConfig(PreTrainedConfig):
    """Sizes of a `ScratchLSTMForSequenceClassification`.

    Args:
        vocab_size: entries of the token embedding.
        embedding_size: width of the token embedding.
        hidden_size: width of one direction of the LSTM.
        num_layers: LSTM layers.
        dropout: probability, on embeddings, between layers and before the classifier.
        pooling: `max` or `mean` over the real tokens.
        pad_token_id: the embedding that stays zero.
        initializer_range: standard deviation of the embedding and the classifier.
        **kwargs: as in every transformers config (`num_labels`, `id2label`, …).

    Raises:
        ValueError: for an unknown pooling.
    """

    model_type = "scratch_lstm"

    def __init__(
        self,
        vocab_size: int = 30522,
        embedding_size: int = 128,
        hidden_size: int = 128,
        num_layers: int = 1,
        dropout: float = 0.3,
        pooling: Literal["max", "mean"] = "max",
        pad_token_id: int | None = 0,
        initializer_range: float = 0.1,
        **kwargs: Any,
    ) -> None:
        if pooling not in ("max", "mean"):
            raise ValueError(f"pooling is {pooling!r}; choose 'max' or 'mean'.")
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.dropout = dropout
        self.pooling = pooling
        self.initializer_range = initializer_range
        super().__init__(pad_token_id=pad_token_id, **kwargs)


class ScratchLSTMForSequenceClassification(ScratchPreTrainedModel):
    """Embed, read in both directions, pool over time, classify."""

    config: ScratchLSTMConfig
    config_class = ScratchLSTMConfig
    base_model_prefix = "lstm"

    def __init__(self, config: ScratchLSTMConfig) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.token = nn.Embedding(
            config.vocab_size, config.embedding_size, padding_idx=config.pad_token_id
        )
        self.lstm = nn.LSTM(
            config.embedding_size,
            config.hidden_size,
            num_layers=config.num_layers,
            dropout=config.dropout if config.num_layers > 1 else 0.0,
            bidirectional=True,
            batch_first=True,
        )
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(2 * config.hidden_size, config.num_labels)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The token embedding."""
        return self.token

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """Replace the token embedding."""
        self.token = value

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        """Classify a batch.

        Args:
            input_ids: [batch, length].
            attention_mask: [batch, length], zero for padding on either side; None has no padding.
                A row of padding only is classified from a zero vector.
            labels: [batch], or [batch, labels] for several at once.
            **kwargs: ignored (`token_type_ids`).

        Returns:
            `logits` [batch, labels] and, with labels, the mean `loss`.
        """
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        hidden_states, real = self.encode(self.dropout(self.token(input_ids)), real.bool())
        pool = masked_max if self.config.pooling == "max" else masked_mean
        logits = self.classifier(self.dropout(pool(hidden_states, real)))
        loss = None
        if labels is not None:
            loss = self.loss_function(labels, logits, self.config)
        return SequenceClassifierOutput(loss=loss, logits=logits)

    def encode(self, embedded: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """Read the real tokens of each row, moved to its start, in both directions.

        Args:
            embedded: [batch, length, embedding_size].
            real: [batch, length], boolean.

        Returns:
            Hidden states [batch, length, 2 * hidden_size] and which of them are real.
        """
        length = real.shape[1]
        order = torch.argsort(~real, dim=1, stable=True)
        embedded = embedded.gather(1, order[:, :, None].expand_as(embedded))
        # A packed sequence must hold a token: an empty row reads one and `real` then hides it.
        lengths = real.sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        output, _ = self.lstm(packed)
        hidden_states, _ = pad_packed_sequence(output, batch_first=True, total_length=length)
        return hidden_states, real.gather(1, order)


def masked_max(hidden_states: Tensor, real: Tensor) -> Tensor:
    """The largest value of each feature over the real tokens; zero for a row without any.

    [batch, length, size] and [batch, length] -> [batch, size].
    """
    lowest = torch.finfo(hidden_states.dtype).min
    largest = hidden_states.masked_fill(~real[:, :, None], lowest).amax(dim=1)
    return torch.where(real.any(dim=1, keepdim=True), largest, torch.zeros_like(largest))


def masked_mean(hidden_states: Tensor, real: Tensor) -> Tensor:
    """The mean of each feature over the real tokens; zero for a row without any.

    [batch, length, size] and [batch, length] -> [batch, size].
    """
    total = (hidden_states * real[:, :, None]).sum(dim=1)
    return total / real.sum(dim=1, keepdim=True).clamp(min=1)
