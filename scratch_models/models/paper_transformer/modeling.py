"""The 2017 Transformer in the paper's layout: what differs from Marian's is said here."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import MarianConfig

from scratch_models.layers.positions import interleaved_sinusoids
from scratch_models.models.transformer.modeling import (
    ScratchTransformerDecoder,
    ScratchTransformerEncoder,
    ScratchTransformerForConditionalGeneration,
    ScratchTransformerModel,
)


class ScratchPaperTransformerConfig(MarianConfig):
    """Marian's config with the base model of the paper for defaults (table 3, §5.1, §5.4).

    Args:
        label_smoothing: share of the probability that a label gives to all entries of the
            vocabulary alike, in training (§5.4); 0 is the plain cross entropy.

    Raises:
        ValueError: for a label smoothing that is not from 0 up to, but not including, 1.
    """

    model_type = "scratch_paper_transformer"

    vocab_size: int = 37000
    max_position_embeddings: int = 512
    encoder_layers: int = 6
    encoder_ffn_dim: int = 2048
    encoder_attention_heads: int = 8
    decoder_layers: int = 6
    decoder_ffn_dim: int = 2048
    decoder_attention_heads: int = 8
    activation_function: str = "relu"
    d_model: int = 512
    scale_embedding: bool = True
    pad_token_id: int | None = 0
    decoder_start_token_id: int = 0
    eos_token_id: int | list[int] | None = 1
    forced_eos_token_id: int | list[int] | None = None
    label_smoothing: float = 0.1

    def __post_init__(self, **kwargs: object) -> None:
        super().__post_init__(**kwargs)
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing is {self.label_smoothing}: expected 0 <= it < 1.")


class ScratchPaperTransformerEncoder(ScratchTransformerEncoder):
    """The encoder over the paper's positions."""

    config_class = ScratchPaperTransformerConfig
    encoding = staticmethod(interleaved_sinusoids)


class ScratchPaperTransformerDecoder(ScratchTransformerDecoder):
    """The decoder over the paper's positions."""

    config_class = ScratchPaperTransformerConfig
    encoding = staticmethod(interleaved_sinusoids)


class ScratchPaperTransformerModel(ScratchTransformerModel):
    """Encoder and decoder over the paper's positions."""

    config_class = ScratchPaperTransformerConfig
    huggingface_class = None
    encoder_class = ScratchPaperTransformerEncoder
    decoder_class = ScratchPaperTransformerDecoder


class ScratchPaperTransformerForConditionalGeneration(ScratchTransformerForConditionalGeneration):
    """The paper's Transformer with its output layer and its loss."""

    config: ScratchPaperTransformerConfig
    config_class = ScratchPaperTransformerConfig
    huggingface_class = None
    model_class: ClassVar[type[ScratchTransformerModel]] = ScratchPaperTransformerModel

    def token_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The mean cross entropy of labels that are asked for, smoothed in training (§5.4).

        Smoothing is a way to train; in evaluation mode the loss is the plain one, whose
        exponential is the perplexity.

        Args:
            logits: [batch, length, vocabulary].
            labels: [batch, length], -100 where none is asked.
        """
        smoothing = self.config.label_smoothing if self.training else 0.0
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=smoothing)


def to_marian(
    model: ScratchPaperTransformerForConditionalGeneration,
) -> ScratchTransformerForConditionalGeneration:
    """The same function in Marian's layout, which HuggingFace's `MarianMTModel` loads once saved.

    Every weight that reads or writes d_model has its dimensions reordered; attention heads and the
    inside of the feed-forward part stay as they are. Nothing but the order in which numbers are
    summed changes.
    """
    own = model.config.to_dict()
    config = MarianConfig(**{k: own[k] for k in own if k not in ("model_type", "label_smoothing")})
    config._attn_implementation = model.config._attn_implementation
    marian = ScratchTransformerForConditionalGeneration(config).to(model.device, model.dtype)
    order = marian_order(config.d_model).to(model.device)
    state = marian.state_dict()
    state.update(
        {
            name: in_order(name, tensor, order)
            for name, tensor in model.state_dict().items()
            if not name.endswith(".position.weight")
        }
    )
    marian.load_state_dict(state)
    if model.generation_config is not None:
        marian.generation_config = model.generation_config
    return marian.train(model.training)


def marian_order(dim: int) -> Tensor:
    """[dim]: which of the paper's dimensions each of Marian's is: 0, 2, 4, … then 1, 3, 5, …."""
    return torch.cat([torch.arange(0, dim, 2), torch.arange(1, dim, 2)])


def in_order(name: str, tensor: Tensor, order: Tensor) -> Tensor:
    """A weight with its dimensions of d_model in another order, judged by the part it is of."""
    part, kind = f".{name}".split(".")[-2:]
    writes_to_model = part in ("output", "down") or part.endswith("norm")
    if writes_to_model:
        return tensor[order]
    if kind == "weight":  # reads from the model, or an embedding: d_model is the last dimension
        return tensor[..., order]
    return tensor
