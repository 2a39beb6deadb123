"""A linear classifier on the features of an encoder that was not trained with it.

logits = features / |features| @ weight.T + bias. The features of a text are the mean of its token
vectors, padding left out; those of an image are a ViT's class token, or the mean over all places of
a map of features.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


class FrozenClassifierConfig(PreTrainedConfig):
    """The encoder's config, and the names of the labels.

    Args:
        encoder: config of the encoder, or its fields.
        **kwargs: as in every config of transformers (`id2label`, `pad_token_id`, …).
    """

    model_type = "frozen_classifier"
    sub_configs: ClassVar = {"encoder": AutoConfig}

    def __init__(
        self, encoder: PreTrainedConfig | dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        if isinstance(encoder, dict):
            encoder = AutoConfig.for_model(**encoder)
        self.encoder = encoder
        super().__init__(**kwargs)


class FrozenClassifier(PreTrainedModel):
    """The encoder and the layer on it; how features are taken is said by the classes below."""

    config_class = FrozenClassifierConfig
    base_model_prefix = "encoder"
    accepts_loss_kwargs = False  # the loss is a mean

    def __init__(self, config: FrozenClassifierConfig) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.encoder = AutoModel.from_config(config.encoder)
        pooler = getattr(self.encoder, "pooler", None)
        if pooler is not None and any(True for _ in pooler.parameters()):
            self.encoder.pooler = None  # no feature comes from it
        self.classifier = nn.Linear(feature_size(config.encoder), config.num_labels)
        self.post_init()

    def classify(self, features: Tensor, labels: Tensor | None) -> SequenceClassifierOutput:
        """`logits` [batch, labels] of features [batch, size]; with labels [batch] the `loss`."""
        logits = self.classifier(nn.functional.normalize(features))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


class FrozenTextClassifier(FrozenClassifier):
    """Labels texts by the mean of their token vectors."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        """input_ids, attention_mask, token_type_ids [batch, length] -> `logits` [batch, labels]."""
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        hidden = self.encoder(**inputs).last_hidden_state.float()
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        return self.classify((hidden * mask).sum(1) / mask.sum(1).clamp(min=1), labels)


class FrozenImageClassifier(FrozenClassifier):
    """Labels images by a ViT's class token, or the mean over all places."""

    main_input_name = "pixel_values"

    def forward(
        self, pixel_values: Tensor, labels: Tensor | None = None, **kwargs: Any
    ) -> SequenceClassifierOutput:
        """pixel_values [batch, channels, height, width] -> `logits` [batch, labels]."""
        hidden = self.encoder(pixel_values=pixel_values).last_hidden_state.float()
        return self.classify(hidden[:, 0] if hidden.ndim == 3 else hidden.mean((2, 3)), labels)


def feature_size(config: PreTrainedConfig) -> int:
    """Width of an encoder's features: that of a Transformer, or of a ResNet's last stage."""
    sizes = getattr(config, "hidden_sizes", None)
    return int(sizes[-1] if sizes else config.hidden_size)
