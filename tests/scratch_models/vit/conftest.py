"""Tiny ViTs on both sides, with equal weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import PreTrainedModel, ViTConfig

from scratch_models import ScratchPreTrainedModel, scratch_class

Pair = tuple[ScratchPreTrainedModel, PreTrainedModel]


@pytest.fixture
def tiny_vit() -> Callable[..., ViTConfig]:
    """A small ViT whose weights are large enough to show an error."""

    def build(**changes: Any) -> ViTConfig:
        sizes: dict[str, Any] = {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 48,
            "image_size": 16,
            "patch_size": 8,
            "initializer_range": 0.3,
        }
        return ViTConfig(**{**sizes, **changes})

    return build


@pytest.fixture
def vit_reference() -> Callable[..., PreTrainedModel]:
    """HuggingFace's model of a config, its biases and norms not left at 0 and 1."""

    def build(config: ViTConfig, head: str = "model", attn: str = "sdpa") -> PreTrainedModel:
        reference_class = getattr(transformers, str(scratch_class("vit", head).huggingface_class))
        reference = reference_class._from_config(
            ViTConfig(**config.to_dict()), attn_implementation=attn
        )
        with torch.no_grad():
            for parameter in reference.parameters():
                if parameter.ndim == 1:
                    parameter.add_(torch.randn_like(parameter) * 0.3)
        return reference.eval()

    return build


@pytest.fixture
def vit_pair(vit_reference, tmp_path: Path) -> Callable[..., Pair]:
    """Our model, read from the folder HuggingFace's was saved to, and HuggingFace's."""

    def build(config: ViTConfig, head: str = "model", attn: str = "sdpa") -> Pair:
        reference = vit_reference(config, head, attn)
        reference.save_pretrained(tmp_path / "reference")
        scratch = scratch_class("vit", head).from_pretrained(
            tmp_path / "reference", attn_implementation=attn
        )
        return scratch.eval(), reference

    return build
