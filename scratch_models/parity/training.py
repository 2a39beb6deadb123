"""Two models trained alike."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedModel

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.hub.mapping import to_own_names
from scratch_models.parity.differences import row_of
from scratch_models.parity.gradients import training_loss
from scratch_models.parity.inputs import Batch
from scratch_models.parity.report import ParityRow

STEPS = 10
_OPTIMIZERS: dict[str, dict[str, float]] = {
    "SGD": {"lr": 1e-3},
    # AdamW divides a gradient by its size, and would make whole steps of the rounding noise of one
    # that is 0 (that of a bias of the keys is): this epsilon is far above such noise.
    "AdamW": {"lr": 1e-4, "eps": 1e-4},
}


def compare_training(
    scratch: ScratchPreTrainedModel,
    reference: PreTrainedModel,
    batches: list[Batch],
    optimizer: str,
) -> list[ParityRow]:
    """Ten steps of `optimizer` ("SGD", "AdamW") on both sides, with dropout from the same seed."""
    losses, reference_losses = (train(model, batches, optimizer) for model in (scratch, reference))
    stage = f"after {STEPS} {optimizer} steps"
    rows = [row_of(stage, "losses", {"": losses}, {"": reference_losses})]
    rows.append(_outputs_row(stage, scratch, reference, batches[0]))
    own = scratch.state_dict()
    expected = to_own_names(scratch, reference.state_dict())
    names = [name for name, _ in scratch.named_parameters()]
    names += [name for name, _ in scratch.named_buffers() if name in own]
    return rows + [row_of(stage, n, {"": own[n]}, {"": expected.get(n)}) for n in names]


def _outputs_row(
    stage: str, scratch: ScratchPreTrainedModel, reference: PreTrainedModel, batch: Batch
) -> ParityRow:
    scratch.eval()
    reference.eval()
    with torch.no_grad():
        ours, theirs = scratch(**batch), reference(**batch)
    tensors = {key: value for key, value in theirs.items() if isinstance(value, Tensor)}
    return row_of(stage, "outputs", {key: ours.get(key) for key in tensors}, tensors)


def train(model: PreTrainedModel, batches: list[Batch], optimizer: str) -> Tensor:
    """Train for `STEPS` steps, taking the batches in turn; the loss before every step, [STEPS]."""
    rule = getattr(torch.optim, optimizer)
    step_rule = rule(model.parameters(), **_OPTIMIZERS[optimizer], fused=True)
    model.train()
    losses = []
    for step in range(STEPS):
        torch.manual_seed(step)  # the same dropout on both sides
        loss = training_loss(model(**batches[step % len(batches)]))
        loss.backward()
        step_rule.step()
        model.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    return torch.stack(losses)
