"""Tiny Transformers on both sides, with equal weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from transformers import MarianConfig, PreTrainedModel

from scratch_models import ScratchPreTrainedModel, scratch_class
from scratch_models.models.transformer.parity_grid import TINY

Pair = tuple[ScratchPreTrainedModel, PreTrainedModel]


@pytest.fixture
def tiny_marian() -> Callable[..., MarianConfig]:
    """The grid's tiny config."""

    def build(**changes: Any) -> MarianConfig:
        return MarianConfig(**{**TINY, **changes})

    return build


@pytest.fixture
def marian_pair(tiny_marian) -> Callable[..., Pair]:
    """Our model and HuggingFace's with HuggingFace's weights, in evaluation mode."""

    def build(head: str = "seq2seq-lm", attn: str = "sdpa", **changes: Any) -> Pair:
        own_class = scratch_class("marian", head)
        reference_class = getattr(transformers, str(own_class.huggingface_class))
        reference = reference_class._from_config(tiny_marian(**changes), attn_implementation=attn)
        perturb(reference)
        scratch = own_class._from_config(tiny_marian(**changes), attn_implementation=attn)
        scratch.load_state_dict(reference.state_dict())
        return scratch.eval(), reference.eval()

    return build


def perturb(model: PreTrainedModel) -> None:
    """Fresh biases are 0 and norms 1, where a swapped or forgotten one would not show."""
    with torch.no_grad():
        for name, tensor in model.state_dict(keep_vars=True).items():
            if tensor.ndim == 1 or name == "final_logits_bias":
                tensor.add_(torch.randn_like(tensor) * 0.3)


@pytest.fixture
def sentences() -> Callable[..., dict[str, torch.Tensor]]:
    """Random source tokens of given lengths, padded: `input_ids` and `attention_mask`."""

    def build(lengths: list[int], padding: int = 60, vocab_size: int = 45) -> dict:
        width = max(lengths)
        ids = torch.randint(1, vocab_size, (len(lengths), width))
        mask = torch.arange(width)[None] < torch.tensor(lengths)[:, None]
        return {"input_ids": ids.masked_fill(~mask, padding), "attention_mask": mask.long()}

    return build
