"""One checkpoint in both classes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel

from scratch_models.hub.auto import HEADS, scratch_class
from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.hub.mapping import to_own_names
from scratch_models.parity.differences import count, row_of
from scratch_models.parity.report import ParityRow


@dataclass
class ParityPair:
    """One checkpoint in both classes, and what transformers said while loading it."""

    scratch: ScratchPreTrainedModel
    reference: PreTrainedModel
    head: str
    info: dict[str, Any]
    reference_info: dict[str, Any]


def load_pair(
    name: str | os.PathLike, head: str | None = None, attn_implementation: str = "sdpa"
) -> ParityPair:
    """Load a checkpoint, in the precision it is stored in, into our class and HuggingFace's.

    Args:
        name: a folder or a name on the Hub, of an architecture there is a from-scratch model of.
        head: a key of `scratch_models.hub.auto.HEADS`; None is the one the checkpoint names.
        attn_implementation: used on both sides.

    Raises:
        ValueError: for an architecture or head without from-scratch model.
        OSError: from transformers, where there is no such checkpoint.
    """
    config = transformers.AutoConfig.from_pretrained(name)
    head = head or checkpoint_head(config)
    own_class = scratch_class(config.model_type, head)
    if own_class.huggingface_class is None:
        raise ValueError(f"{own_class.__name__} has no counterpart in transformers to equal.")
    reference_class = getattr(transformers, own_class.huggingface_class)
    how: dict[str, Any] = {
        "attn_implementation": attn_implementation,
        "dtype": "auto",
        "output_loading_info": True,
    }
    scratch, info = own_class.from_pretrained(name, **how)
    reference, reference_info = reference_class.from_pretrained(name, **how)
    return ParityPair(scratch, reference, head, info, reference_info)


def checkpoint_head(config: PreTrainedConfig) -> str:
    """The head a checkpoint was saved with, by `architectures` in its config; else the body."""
    for architecture in config.architectures or []:
        for head, auto_class in HEADS.items():
            if architecture.endswith(auto_class.removeprefix("AutoModel") or "Model"):
                return head
    return "model"


def compare_loading(
    scratch: ScratchPreTrainedModel,
    reference: PreTrainedModel,
    info: dict[str, Any],
    reference_info: dict[str, Any],
) -> list[ParityRow]:
    """Did both read the same weights from a checkpoint? Then make the absent ones equal.

    A head the checkpoint does not hold is random on both sides; ours is given HuggingFace's values.
    """
    expected = to_own_names(scratch, reference.state_dict())
    missing = set(info["missing_keys"])
    reference_missing = set(
        to_own_names(scratch, {key: torch.empty(0) for key in reference_info["missing_keys"]})
    )
    tied = set(scratch.all_tied_weights_keys or {})
    own = scratch.state_dict()
    loaded = {key: tensor for key, tensor in own.items() if key not in missing}
    rows = [
        count("loading", "found by one side only", (missing ^ reference_missing) - tied),
        count("loading", "held by one side only", set(own) ^ set(expected)),
        row_of("loading", "values as loaded", loaded, expected, exact=True),
    ]
    with torch.no_grad():
        for key in missing & expected.keys():
            if own[key].shape == expected[key].shape:  # else no copy: the rows to come show it
                own[key].copy_(expected[key])
    return rows
