"""What two models compute from the same batches."""

from __future__ import annotations

from itertools import zip_longest

import torch
from torch import Tensor
from transformers import PreTrainedModel

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.parity.differences import row_of_pairs
from scratch_models.parity.gradients import training_loss
from scratch_models.parity.inputs import Batch
from scratch_models.parity.report import ParityRow


def compare_forward(
    scratch: ScratchPreTrainedModel, reference: PreTrainedModel, batches: list[Batch]
) -> list[ParityRow]:
    """Hidden states, attention maps, outputs and loss, without dropout."""
    scratch.eval()
    reference.eval()
    pairs: dict[tuple[str, str], list[tuple[Tensor | None, Tensor | None]]] = {}
    with torch.no_grad():
        for batch in batches:
            flags = {"output_hidden_states": True, "output_attentions": True}
            ours = scratch(**batch, **flags)
            theirs = reference(**batch, output_hidden_states=True)
            maps = _eager_attentions(reference, batch)
            layers = zip_longest(ours.hidden_states, theirs.hidden_states)
            for number, pair in enumerate(layers):
                name = f"layer {number}" if number else "embeddings"
                pairs.setdefault(("hidden states", name), []).append(pair)
            for number, pair in enumerate(zip_longest(ours.attentions, maps), start=1):
                pairs.setdefault(("attention maps", f"layer {number}"), []).append(pair)
            for key, tensor in theirs.items():
                if isinstance(tensor, Tensor):
                    pairs.setdefault(("outputs", key), []).append((ours.get(key), tensor))
            loss = (training_loss(ours), training_loss(theirs))
            pairs.setdefault(("outputs", "loss"), [])[:0] = [loss]
    return [row_of_pairs(stage, name, pair) for (stage, name), pair in pairs.items()]


def _eager_attentions(reference: PreTrainedModel, batch: Batch) -> tuple[Tensor, ...]:
    implementation = reference.config._attn_implementation
    reference.set_attn_implementation("eager")
    try:
        return reference(**batch, output_attentions=True).attentions
    finally:
        reference.set_attn_implementation(implementation)
