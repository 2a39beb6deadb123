"""One checkpoint in both classes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel

from scratch_models.hub.architecture import architectures
from scratch_models.hub.auto import scratch_class
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
        attn_implementation: used on both sides; not looked at for a model without attention.

    Raises:
        ValueError: for an architecture or head without from-scratch model, or one that
            transformers has not.
        OSError: from transformers, where there is no such checkpoint.
    """
    config = read_config(name)
    head = head or checkpoint_head(config)
    own_class, reference_class = classes_to_compare(config.model_type, head)
    how: dict[str, Any] = {"dtype": "auto", "output_loading_info": True}
    if has_attention(reference_class):
        how["attn_implementation"] = attn_implementation
    scratch, info = own_class.from_pretrained(name, **how)
    scratch.set_packing("off")  # what is computed for padding is compared, too
    reference, reference_info = reference_class.from_pretrained(name, **how)
    # HuggingFace's class trains sinusoidal positions it has loaded (not those of a new model) and
    # does not save what they become; ours keeps them fixed, so they are on both sides here.
    fixed = {key for key, weight in scratch.named_parameters() if not weight.requires_grad}
    for key, weight in to_own_names(scratch, dict(reference.named_parameters())).items():
        weight.requires_grad_(key not in fixed)
    return ParityPair(scratch, reference, head, info, reference_info)


def read_config(name: str | os.PathLike) -> PreTrainedConfig:
    """The config of a checkpoint, also of a type that transformers has not.

    Raises:
        OSError: without a config.json that can be read.
        ValueError: for an architecture without from-scratch model.
    """
    fields, _ = PreTrainedConfig.get_config_dict(name)
    model_type = fields.get("model_type")
    if model_type is None:  # older than the field: transformers looks for it in the name
        return transformers.AutoConfig.from_pretrained(name)
    heads = architectures()[model_type].classes if model_type in architectures() else ("model",)
    return scratch_class(model_type, next(iter(heads))).config_class.from_pretrained(name)


def checkpoint_head(config: PreTrainedConfig) -> str:
    """The head a checkpoint was saved with, by `architectures` in its config; else the body.

    A class we have no counterpart of (`GPT2DoubleHeadsModel`) has a body all the same.
    """
    architecture = architectures().get(config.model_type)
    for head in architecture.classes if architecture is not None else ():
        own_class = scratch_class(config.model_type, head)
        if own_class.huggingface_class in (config.architectures or []):
            return head
    return "model"


def classes_to_compare(
    model_type: str, head: str
) -> tuple[type[ScratchPreTrainedModel], type[PreTrainedModel]]:
    """Our class of an architecture and head, and the one of transformers it equals.

    Raises:
        ValueError: if there is no such class, on our side or in transformers.
    """
    own_class = scratch_class(model_type, head)
    if own_class.huggingface_class is None:
        raise ValueError(f"{own_class.__name__} has no counterpart in transformers to equal.")
    return own_class, getattr(transformers, own_class.huggingface_class)


def has_attention(model_class: type[PreTrainedModel]) -> bool:
    """Whether there is an attention in it whose implementation could be chosen."""
    return bool(model_class._supports_sdpa)


def compare_loading(
    scratch: ScratchPreTrainedModel,
    reference: PreTrainedModel,
    info: dict[str, Any],
    reference_info: dict[str, Any],
) -> list[ParityRow]:
    """Did both read the same weights from a checkpoint? Then make the absent ones equal.

    A head the checkpoint does not hold is random on both sides; ours is given HuggingFace's values.
    """
    state = reference.state_dict()
    expected = to_own_names(scratch, state)
    missing = set(info["missing_keys"])
    absent = {key: state[key] for key in reference_info["missing_keys"] if key in state}
    reference_missing = set(to_own_names(scratch, absent))
    tied = set(scratch.all_tied_weights_keys or {})
    own = scratch.state_dict()
    loaded = {key: tensor for key, tensor in own.items() if key not in missing}
    rows = [
        count("loading", "found by one side only", (missing ^ reference_missing) - tied),
        count("loading", "held by one side only", set(own) ^ set(expected)),
        row_of("loading", "values as loaded", loaded, expected, tolerance=0.0),
    ]
    with torch.no_grad():
        for key in missing & expected.keys():
            if own[key].shape == expected[key].shape:  # else no copy: the rows to come show it
                own[key].copy_(expected[key])
    return rows
