"""The gradients of two models on the same batches."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.hub.mapping import to_own_names
from scratch_models.parity.differences import NOISE, TOLERANCE, difference_of, largest_value
from scratch_models.parity.inputs import Batch
from scratch_models.parity.report import ParityRow


def compare_gradients(
    scratch: ScratchPreTrainedModel, reference: PreTrainedModel, batches: list[Batch]
) -> list[ParityRow]:
    """The gradient of every parameter for the summed loss of all batches, without dropout."""
    ours = _gradients(scratch, batches)
    theirs = to_own_names(scratch, _gradients(reference, batches))
    names = [n for n, _ in scratch.named_parameters() if n in ours or n in theirs]
    largest = max((largest_value(theirs[name]) for name in names if name in theirs), default=0.0)
    rows = []
    # In the order of the model: sorted by name, layer 10 would stand before layer 2.
    for name in names:
        difference, scale = difference_of(ours.get(name), theirs.get(name))
        limit = min(max(TOLERANCE * scale, NOISE * largest), TOLERANCE * max(scale, 1.0))
        rows.append(ParityRow("gradients", name, difference, limit))
    for model in (scratch, reference):
        model.zero_grad(set_to_none=True)
    return rows


def _gradients(model: PreTrainedModel, batches: list[Batch]) -> dict[str, Tensor]:
    model.eval()
    model.zero_grad(set_to_none=True)
    for batch in batches:
        training_loss(model(**batch)).backward()
    return {n: p.grad for n, p in model.named_parameters() if p.grad is not None}


def training_loss(output: Any) -> Tensor:
    """The loss of a head; for a body the mean product of its outputs with fixed random numbers."""
    if output.get("loss") is not None:
        return output.loss
    generator = torch.Generator().manual_seed(0)
    tensors = [output.last_hidden_state]
    if output.get("pooler_output") is not None:
        tensors.append(output.pooler_output)
    products = [t * torch.randn(t.shape, generator=generator).to(t) for t in tensors]
    return torch.stack([product.mean() for product in products]).sum()
