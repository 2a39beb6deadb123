"""Tiny ResNets on both sides, with equal weights and batch statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import nn
from transformers import PreTrainedModel, ResNetConfig

from scratch_models import ScratchPreTrainedModel, scratch_class
from scratch_models.baselines.resnet.parity_grid import TINY

Pair = tuple[ScratchPreTrainedModel, PreTrainedModel]


@pytest.fixture
def tiny_resnet_config() -> Callable[..., ResNetConfig]:
    def build(**changes: Any) -> ResNetConfig:
        return ResNetConfig(**{**TINY, "num_labels": 3, **changes})

    return build


@pytest.fixture
def resnet_pair(tiny_resnet_config) -> Callable[..., Pair]:
    """Our model and HuggingFace's with HuggingFace's weights, in evaluation mode."""

    def build(head: str = "image-classification", **changes: Any) -> Pair:
        own_class = scratch_class("resnet", head)
        reference = getattr(transformers, own_class.huggingface_class)(
            tiny_resnet_config(**changes)
        )
        as_if_trained(reference)
        scratch = own_class(tiny_resnet_config(**changes))
        scratch.load_state_dict(reference.state_dict())
        return scratch.eval(), reference.eval()

    return build


@pytest.fixture
def trained_resnet(tiny_resnet_config) -> PreTrainedModel:
    """HuggingFace's classifier with weights and statistics unlike those of a fresh model."""
    reference = transformers.ResNetForImageClassification(tiny_resnet_config())
    as_if_trained(reference)
    return reference.eval()


def as_if_trained(model: PreTrainedModel) -> None:
    """Fresh norms are 1, 0 and without statistics, where a forgotten one would not show."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.weight.add_(torch.randn_like(module.weight) * 0.3)
                module.bias.add_(torch.randn_like(module.bias) * 0.3)
                module.running_mean.normal_(std=0.3)
                module.running_var.uniform_(0.5, 1.5)
                module.num_batches_tracked.fill_(int(torch.randint(1, 1000, ())))
