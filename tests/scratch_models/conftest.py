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
from scratch_models.models.bert.parity_grid import TINY
from scratch_models.parity.grid import perturb_flat_parameters

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
        return BertConfig(**{**TINY, "num_labels": 2, **changes})

    return build


@pytest.fixture
def tiny_pair() -> Callable[..., Pair]:
    """Our model and HuggingFace's with HuggingFace's weights, in evaluation mode; not packing."""

    def build(config: BertConfig, head: str = "model", attn: str = "sdpa") -> Pair:
        own_class = scratch_class(config.model_type, head)
        reference_class = getattr(transformers, str(own_class.huggingface_class))
        reference = reference_class._from_config(
            BertConfig(**config.to_dict()), attn_implementation=attn
        )
        perturb_flat_parameters(reference)
        scratch = own_class._from_config(BertConfig(**config.to_dict()), attn_implementation=attn)
        scratch.load_state_dict(reference.state_dict())
        scratch.set_packing("off")
        return scratch.eval(), reference.eval()

    return build
