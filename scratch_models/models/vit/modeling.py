"""ViT, built from `scratch_models.layers`; its package's docstring says where each part is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

from torch import Tensor, nn
from transformers import ViTConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutputWithPooling, ImageClassifierOutput
from transformers.utils.generic import can_return_tuple
from transformers.utils.output_capturing import capture_outputs

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.layers.activations import activation
from scratch_models.layers.attention import MultiHeadAttention
from scratch_models.layers.feed_forward import FeedForward
from scratch_models.layers.masks import bidirectional_mask
from scratch_models.layers.patch_embeddings import (
    PatchEmbeddings,
    as_size,
    check_whole_patches,
    warn_of_dropped_pixels,
)
from scratch_models.layers.stack import EncoderLayer, EncoderStack, pre_norm
from scratch_models.models.vit import mapping  # noqa: F401  (registers the name tables)

_from_checkpoint: ContextVar[bool] = ContextVar("from_checkpoint", default=False)


def build_norm(config: ViTConfig) -> nn.LayerNorm:
    """A layer norm with the checkpoint's own epsilon."""
    return nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)


def build_embeddings(config: ViTConfig) -> PatchEmbeddings:
    """The input (equation 1)."""
    return PatchEmbeddings(
        as_size(config.image_size),
        as_size(config.patch_size),
        config.num_channels,
        config.hidden_size,
        dropout=config.hidden_dropout_prob,
    )


def build_layer(config: ViTConfig) -> EncoderLayer:
    """One Transformer block (equations 2 and 3)."""
    return EncoderLayer(
        attention=MultiHeadAttention(
            config.hidden_size,
            config.num_attention_heads,
            dropout=config.attention_probs_dropout_prob,
            config=config,
            qkv_bias=config.qkv_bias,
        ),
        attention_norm=build_norm(config),
        feed_forward=FeedForward(
            config.hidden_size, config.intermediate_size, activation(config.hidden_act)
        ),
        feed_forward_norm=build_norm(config),
        dropout=config.hidden_dropout_prob,
        residual=pre_norm,
    )


def build_pooler(config: ViTConfig) -> ClassTokenPooler:
    """The pooler with the size and activation of the config."""
    size = config.pooler_output_size or config.hidden_size
    return ClassTokenPooler(config.hidden_size, size, activation(config.pooler_act))


class ClassTokenPooler(nn.Module):
    """activation(W y + b) of the class token y: the image as one vector (not in the paper)."""

    def __init__(
        self, hidden_size: int, output_size: int, activation: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden_size, output_size)
        self.activation = activation

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[batch, length, hidden_size] -> [batch, output_size]."""
        return self.activation(self.dense(hidden_states[:, 0]))


class ScratchViTPreTrainedModel(ScratchPreTrainedModel):
    """What all ViT classes share."""

    config: ViTConfig
    config_class = ViTConfig
    base_model_prefix = "vit"
    main_input_name = "pixel_values"
    input_modalities = ("image",)
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True
    _can_compile_fullgraph = True
    _input_embed_layer = "projection"
    _no_split_modules: ClassVar[list[str]] = ["PatchEmbeddings", "EncoderLayer"]
    _can_record_outputs: ClassVar[dict[str, Any]] = {
        "hidden_states": EncoderLayer,
        "attentions": MultiHeadAttention,
    }

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> Any:
        """As in transformers.

        A checkpoint whose images are not whole patches loads, with a warning; a new model of such
        a config is refused.
        """
        with _loading():
            return super().from_pretrained(*args, **kwargs)

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, PatchEmbeddings):
            init.trunc_normal_(module.position, mean=0.0, std=self.config.initializer_range)
            init.trunc_normal_(module.class_token, mean=0.0, std=self.config.initializer_range)


@contextmanager
def _loading() -> Iterator[None]:
    """Models built in this block get their weights from a checkpoint."""
    token = _from_checkpoint.set(True)
    try:
        yield
    finally:
        _from_checkpoint.reset(token)


class ScratchViTModel(ScratchViTPreTrainedModel):
    """The encoder: hidden states of every token and a pooled vector.

    Raises:
        ValueError: for a new model whose `image_size` is not a multiple of its `patch_size`. A
            checkpoint like that loads, with a warning.
    """

    huggingface_class = "ViTModel"

    def __init__(self, config: ViTConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config)
        judge = warn_of_dropped_pixels if _from_checkpoint.get() else check_whole_patches
        judge(as_size(config.image_size), as_size(config.patch_size))
        self.embeddings = build_embeddings(config)
        self.layers = EncoderStack([build_layer(config) for _ in range(config.num_hidden_layers)])
        self.norm = build_norm(config)
        self.pooler = build_pooler(config) if add_pooling_layer else None
        self.post_init()

    @capture_outputs(tie_last_hidden_states=False)
    def forward(
        self,
        pixel_values: Tensor,
        bool_masked_pos: None = None,
        interpolate_pos_encoding: bool | None = None,
        attention_mask: Tensor | None = None,
        first_token_only: bool = False,
        **kwargs: Any,
    ) -> BaseModelOutputWithPooling:
        """Encode a batch of images.

        Args:
            pixel_values: [batch, channels, height, width].
            bool_masked_pos: masks of masked image modelling, in HuggingFace's place; refused.
            interpolate_pos_encoding: take images of other sizes than `config.image_size`.
            attention_mask: over class token and patches, [batch, 1 + patches], zero hides; 3-D and
                4-D masks as in `scratch_models.layers.masks.bidirectional_mask`.
            first_token_only: compute in the last layer only what the class token needs, where that
                changes nothing else; `last_hidden_state` is then [batch, 1, hidden_size].
            **kwargs: `output_hidden_states` (the last one before the final norm),
                `output_attentions` (real weights under every attention implementation),
                `return_dict`.

        Returns:
            `last_hidden_state` [batch, 1 + patches, hidden_size] after the final norm,
            `pooler_output` [batch, pooler_output_size].

        Raises:
            ValueError: for images or a mask that do not fit, and for `bool_masked_pos`.
        """
        if bool_masked_pos is not None:
            raise ValueError(
                "bool_masked_pos is given but this model has no mask token: use HuggingFace's "
                "ViTForMaskedImageModeling."
            )
        kwargs.setdefault("output_attentions", self.config.output_attentions)
        embedded = self.embeddings(pixel_values, interpolate=bool(interpolate_pos_encoding))
        mask = bidirectional_mask(self.config, embedded, attention_mask)
        first_only = first_token_only and self.layers.first_token_suffices(self.config, **kwargs)
        hidden_states = self.layers(embedded, mask, first_token_only=first_only, **kwargs)
        normed = self.norm(hidden_states)
        pooled = self.pooler(normed) if self.pooler is not None else None
        return BaseModelOutputWithPooling(last_hidden_state=normed, pooler_output=pooled)


class ScratchViTForImageClassification(ScratchViTPreTrainedModel):
    """ViT that labels images from the class token (§3.1)."""

    huggingface_class = "ViTForImageClassification"

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.vit = ScratchViTModel(config, add_pooling_layer=False)
        self.classifier: nn.Module = nn.Identity()
        if config.num_labels > 0:
            self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        pixel_values: Tensor,
        labels: Tensor | None = None,
        interpolate_pos_encoding: bool | None = None,
        attention_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> ImageClassifierOutput:
        """Arguments as `ScratchViTModel`; labels [batch], or [batch, labels] for several at once.

        `config.problem_type` chooses the loss (regression, single_label_classification,
        multi_label_classification); unset, it follows from the labels as in transformers.

        Returns `logits` [batch, labels] (the class token [batch, hidden_size] itself where
        `num_labels` is 0) and, with labels, the mean `loss`.
        """
        outputs = self.vit(
            pixel_values,
            interpolate_pos_encoding=interpolate_pos_encoding,
            attention_mask=attention_mask,
            first_token_only=True,
            return_dict=True,
            **kwargs,
        )
        logits = self.classifier(outputs.last_hidden_state[:, 0])
        loss = None
        if labels is not None:
            loss = self.loss_function(labels, logits, self.config, **kwargs)
        return ImageClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )
