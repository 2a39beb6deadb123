"""A model that leaves padding out of its computation, against HuggingFace's, which does not."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.hub.mapping import to_own_names
from scratch_models.parity.differences import NOISE, difference_of, largest_value, row_of_pairs
from scratch_models.parity.gradients import training_loss
from scratch_models.parity.inputs import Batch
from scratch_models.parity.report import ParityRow

_STAGE = "packing"


def compare_packing(
    scratch: ScratchPreTrainedModel, reference: PreTrainedModel, batches: list[Batch]
) -> list[ParityRow]:
    """Outputs of real tokens, zeros at padding, loss and gradients, without dropout.

    Nothing for models that do not pack, and for batches without padding.
    """
    padded = [batch for batch in batches if _has_padding(batch)]
    if not scratch.can_pack or not padded:
        return []
    scratch.eval()
    reference.eval()
    scratch.set_packing("auto")
    try:
        with torch.no_grad():
            rows = [_outputs_row(scratch, reference, padded)]
        # The same loss on both sides: a body's own looks at padding, too, which is not equal.
        if "labels" in padded[0]:
            rows += _gradient_rows(scratch, reference, padded)
    finally:
        scratch.set_packing("off")
    return rows


def _has_padding(batch: Batch) -> bool:
    mask = batch.get("attention_mask")
    return mask is not None and mask.ndim == 2 and not bool(mask.all())


def _outputs_row(
    scratch: PreTrainedModel, reference: PreTrainedModel, batches: list[Batch]
) -> ParityRow:
    pairs: list[tuple[Tensor | None, Tensor | None]] = []
    for batch in batches:
        ours = scratch(**batch, output_hidden_states=True)
        theirs = reference(**batch, output_hidden_states=True)
        real = batch["attention_mask"].bool()
        for name, expected in theirs.items():
            pairs += _of_real_tokens(ours.get(name), expected, real)
    return row_of_pairs(_STAGE, "outputs and hidden states of real tokens", pairs)


def _of_real_tokens(
    ours: Any, theirs: Any, real: Tensor
) -> list[tuple[Tensor | None, Tensor | None]]:
    if isinstance(theirs, Tensor):
        by_token = theirs.shape[:2] == real.shape
        return [(ours[real], theirs[real]) if by_token and ours is not None else (ours, theirs)]
    return [
        (None if own is None else own[real], None if other is None else other[real])
        for own, other in zip_longest(ours or (), theirs)
    ]


def _gradient_rows(
    scratch: ScratchPreTrainedModel, reference: PreTrainedModel, batches: list[Batch]
) -> list[ParityRow]:
    found: list[dict[str, Tensor]] = []
    losses: list[Tensor] = []
    for model in (scratch, reference):
        model.zero_grad(set_to_none=True)
        parts = [training_loss(model(**batch)) for batch in batches]
        losses.append(torch.stack(parts).detach())
        torch.stack(parts).sum().backward()
        found.append({n: p.grad for n, p in model.named_parameters() if p.grad is not None})
    theirs = to_own_names(scratch, found[1])
    measured = [difference_of(gradient, theirs.get(name)) for name, gradient in found[0].items()]
    largest = max((largest_value(gradient) for gradient in theirs.values()), default=0.0)
    for model in (scratch, reference):
        model.zero_grad(set_to_none=True)
    return [
        row_of_pairs(_STAGE, "losses", [(losses[0], losses[1])]),
        ParityRow(
            _STAGE,
            "gradients",
            max((difference for difference, _ in measured), default=0.0),
            10 * NOISE * max(largest, 1.0),
        ),
    ]
