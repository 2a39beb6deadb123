"""Tiny GPT-2s on both sides, with equal weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from transformers import GPT2Config, PreTrainedModel

from scratch_models import ScratchPreTrainedModel, scratch_class
from scratch_models.models.gpt2.parity_grid import TINY

Pair = tuple[ScratchPreTrainedModel, PreTrainedModel]


@pytest.fixture
def tiny_gpt2() -> Callable[..., GPT2Config]:
    """The grid's tiny config, with a padding token."""

    def build(**changes: Any) -> GPT2Config:
        return GPT2Config(**{**TINY, "pad_token_id": 0, **changes})

    return build


@pytest.fixture
def gpt2_pair(tiny_gpt2) -> Callable[..., Pair]:
    """Our model and HuggingFace's with HuggingFace's weights, in evaluation mode."""

    def build(head: str = "causal-lm", attn: str = "sdpa", **changes: Any) -> Pair:
        own_class = scratch_class("gpt2", head)
        reference_class = getattr(transformers, str(own_class.huggingface_class))
        reference = reference_class._from_config(tiny_gpt2(**changes), attn_implementation=attn)
        with torch.no_grad():
            for parameter in reference.parameters():
                if parameter.ndim == 1:  # fresh biases are 0, where a forgotten one would not show
                    parameter.add_(torch.randn_like(parameter) * 0.3)
        scratch = own_class._from_config(tiny_gpt2(**changes), attn_implementation=attn)
        scratch.load_state_dict(reference.state_dict())
        return scratch.eval(), reference.eval()

    return build


@pytest.fixture
def texts() -> Callable[..., dict[str, torch.Tensor]]:
    """Random tokens of given lengths, padded on one side: `input_ids` and `attention_mask`."""

    def build(lengths: list[int], side: str = "left") -> dict[str, torch.Tensor]:
        width = max(lengths)
        ids = torch.randint(3, 61, (len(lengths), width))
        mask = (torch.arange(width)[None] < torch.tensor(lengths)[:, None]).long()
        mask = mask.flip(1) if side == "left" else mask
        return {"input_ids": ids * mask, "attention_mask": mask}

    return build
