"""Tiny random models on both sides, with equal weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import transformers
from transformers import BertConfig, PreTrainedModel
from transformers.utils import logging

from scratch_models import ScratchPreTrainedModel, scratch_class

Pair = tuple[ScratchPreTrainedModel, PreTrainedModel]


@pytest.fixture(autouse=True, scope="session")
def quiet_transformers() -> None:
    logging.set_verbosity_error()
    logging.disable_progress_bar()


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors: handing them to a second thread costs ten times what it saves."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def tiny_config() -> Callable[..., BertConfig]:
    """A small BERT whose weights are large enough to show an error."""

    def build(**changes: Any) -> BertConfig:
        sizes: dict[str, Any] = {
            "vocab_size": 61,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 48,
            "max_position_embeddings": 24,
            "initializer_range": 0.3,
        }
        return BertConfig(**{**sizes, **changes})

    return build


@pytest.fixture
def tiny_pair() -> Callable[..., Pair]:
    """Our model and HuggingFace's with HuggingFace's weights, in evaluation mode."""

    def build(config: BertConfig, head: str = "model", attn: str = "sdpa") -> Pair:
        own_class = scratch_class(config.model_type, head)
        reference_class = getattr(transformers, str(own_class.huggingface_class))
        reference = reference_class._from_config(
            BertConfig(**config.to_dict()), attn_implementation=attn
        )
        perturb_flat_parameters(reference)
        scratch = own_class._from_config(BertConfig(**config.to_dict()), attn_implementation=attn)
        scratch.load_state_dict(reference.state_dict())
        return scratch.eval(), reference.eval()

    return build


def perturb_flat_parameters(model: PreTrainedModel) -> None:
    """Fresh biases are 0 and norms 1, where a swapped or forgotten one would not show."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.3)
