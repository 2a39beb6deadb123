"""Two models trained alike."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedModel

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.hub.mapping import to_own_names
from scratch_models.parity.differences import NOISE, largest_value, row_of
from scratch_models.parity.gradients import training_loss
from scratch_models.parity.inputs import Batch
from scratch_models.parity.report import ParityRow

STEPS = 10


def compare_training(
    scratch: ScratchPreTrainedModel,
    reference: PreTrainedModel,
    batches: list[Batch],
    optimizer: str,
) -> list[ParityRow]:
    """Ten steps of `optimizer` ("SGD", "AdamW") on both sides, with dropout from the same seed.

    AdamW divides a gradient by its size: where there is none but rounding noise, it makes whole
    steps of the noise. Such parameters are not compared after AdamW, and made equal before the
    outputs are.
    """
    losses, gradients = train(scratch, batches, optimizer)
    reference_losses, _ = train(reference, batches, optimizer)
    stage = f"after {STEPS} {optimizer} steps"
    own = scratch.state_dict()
    expected = to_own_names(scratch, reference.state_dict())
    names = [name for name, _ in scratch.named_parameters()]
    names += [name for name, _ in scratch.named_buffers() if name in own]
    noise = _without_gradient(gradients) if optimizer == "AdamW" else set()
    weights = [
        row_of(stage, name, {"": own[name]}, {"": expected.get(name)})
        for name in names
        if name not in noise
    ]
    with torch.no_grad():
        for name in noise & expected.keys():
            own[name].copy_(expected[name])
    rows = [row_of(stage, "losses", {"": losses}, {"": reference_losses})]
    rows.append(_outputs_row(stage, scratch, reference, batches[0]))
    return rows + weights


def _without_gradient(gradients: dict[str, float]) -> set[str]:
    """Parameters whose largest gradient is rounding noise beside the largest of the model.

    The bias of keys, and whatever else shifts all arguments of a softmax alike.
    """
    largest = max(gradients.values(), default=0.0)
    return {name for name, value in gradients.items() if 0.0 < value < NOISE * largest}


def _outputs_row(
    stage: str, scratch: ScratchPreTrainedModel, reference: PreTrainedModel, batch: Batch
) -> ParityRow:
    scratch.eval()
    reference.eval()
    with torch.no_grad():
        ours, theirs = scratch(**batch), reference(**batch)
    tensors = {key: value for key, value in theirs.items() if isinstance(value, Tensor)}
    return row_of(stage, "outputs", {key: ours.get(key) for key in tensors}, tensors)


def train(
    model: PreTrainedModel, batches: list[Batch], optimizer: str
) -> tuple[Tensor, dict[str, float]]:
    """Train for `STEPS` steps, taking the batches in turn.

    Returns:
        The loss before every step [STEPS], and the largest gradient each parameter saw.
    """
    learning_rate = {"SGD": 1e-3, "AdamW": 1e-4}[optimizer]
    step_rule = getattr(torch.optim, optimizer)(model.parameters(), lr=learning_rate, fused=True)
    model.train()
    losses = []
    gradients: dict[str, float] = {}
    for step in range(STEPS):
        torch.manual_seed(step)  # the same dropout on both sides
        loss = training_loss(model(**batches[step % len(batches)]))
        loss.backward()
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                largest = largest_value(parameter.grad)
                gradients[name] = max(gradients.get(name, 0.0), largest)
        step_rule.step()
        model.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    return torch.stack(losses), gradients
