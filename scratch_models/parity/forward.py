"""What two models compute from the same batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor
from transformers import EncoderDecoderCache, PreTrainedModel

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.parity.differences import row_of_pairs
from scratch_models.parity.gradients import training_loss
from scratch_models.parity.inputs import Batch
from scratch_models.parity.loading import has_attention
from scratch_models.parity.report import ParityRow

_Place = tuple[str, str]
"""Stage and name of a row."""


def compare_forward(
    scratch: ScratchPreTrainedModel, reference: PreTrainedModel, batches: list[Batch]
) -> list[ParityRow]:
    """Hidden states, attention maps, outputs, loss and caches, without dropout.

    What HuggingFace's model returns decides what ours must.
    """
    scratch.eval()
    reference.eval()
    pairs: dict[_Place, list[tuple[Tensor | None, Tensor | None]]] = defaultdict(list)
    with torch.no_grad():
        for batch in batches:
            theirs = reference(**batch, output_hidden_states=True)
            expected = {key: theirs[key] for key in theirs if "attentions" not in key}
            flags = {"output_hidden_states": True}
            if has_attention(type(reference)):
                expected |= _eager_attentions(reference, batch)
                flags["output_attentions"] = True
            ours = scratch(**batch, **flags)
            rows = _rows_for_maps(reference, batch)
            for key, value in expected.items():
                own_value = ours.get(key)
                if "attentions" in key:
                    own_value, value = (
                        tuple(m[rows] for m in maps or ()) for maps in (own_value, value)
                    )
                for place, own, other in _matched(key, own_value, value):
                    pairs[place].append((own, other))
            pairs["outputs", "loss"].append((training_loss(ours), training_loss(theirs)))
    return [row_of_pairs(stage, name, pairs[stage, name]) for stage, name in _in_order(pairs)]


def _in_order(places: Mapping[_Place, Any]) -> list[_Place]:
    """By stage, an encoder before its decoder."""
    stages = ("hidden states", "attention maps", "outputs", "cache")
    later = ("decoder", "cross")
    return sorted(places, key=lambda p: (stages.index(p[0]), p[1].startswith(later)))


def _eager_attentions(reference: PreTrainedModel, batch: Batch) -> dict[str, Any]:
    """The attention maps of all kinds; fused kernels return none."""
    implementation = reference.config._attn_implementation
    reference.set_attn_implementation("eager")
    try:
        output = reference(**batch, output_attentions=True)
    finally:
        reference.set_attn_implementation(implementation)
    return {key: output[key] for key in output if "attentions" in key}


def _rows_for_maps(reference: PreTrainedModel, batch: Batch) -> Tensor | slice:
    """The rows on which HuggingFace's eager attention must give the maps of other kernels.

    Not those whose source is all padding: fused kernels make zeros of what nothing can be seen of,
    eager attention means, and a decoder goes on computing with either.
    """
    if reference.config.is_encoder_decoder and "attention_mask" in batch:
        return batch["attention_mask"].any(dim=1)
    return slice(None)


def _matched(
    key: str, ours: Any, theirs: Any
) -> Iterator[tuple[_Place, Tensor | None, Tensor | None]]:
    """The tensors of one field of an output, side by side; None stands for one that is missing."""
    if isinstance(theirs, Tensor):
        yield ("outputs", key), ours, theirs
    elif "hidden_states" in key:
        side = key.removesuffix("hidden_states").replace("_", " ")  # "", "encoder ", "decoder "
        for number, pair in enumerate(zip_longest(ours or (), theirs)):
            name = f"layer {number}" if number else "embeddings"
            yield ("hidden states", side + name), *pair
    elif "attentions" in key:
        side = key.removesuffix("attentions").replace("_", " ")  # also "cross "
        for number, pair in enumerate(zip_longest(ours or (), theirs), start=1):
            yield ("attention maps", f"{side}layer {number}"), *pair
    elif key == "cache":
        own, other = _remembered(ours), _remembered(theirs)
        for name in [*other, *(name for name in own if name not in other)]:
            for pair in zip_longest(own.get(name, ()), other.get(name, ())):
                yield ("cache", name), *pair


def _remembered(cache: Any) -> dict[str, Sequence[Tensor]]:
    """Keys and values of every layer of a cache."""
    if cache is None:
        return {}
    if isinstance(cache, EncoderDecoderCache):
        cross = _remembered(cache.cross_attention_cache)
        own = _remembered(cache.self_attention_cache)
        return own | {f"cross {name}": tensors for name, tensors in cross.items()}
    return {f"layer {n}": (layer.keys, layer.values) for n, layer in enumerate(cache.layers, 1)}
