"""Short trainings for measurements: so many steps on batches that are made up as they go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from toolkit.ignored_label import IGNORED

Draw = Callable[[torch.Generator], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Recipe:
    """How a short training goes: AdamW, its rate rising for a tenth of the steps, then falling.

    Attributes:
        learning_rate: the highest one.
        weight_decay: AdamW's.
        clip: the norm that gradients are cut to.
    """

    steps: int
    learning_rate: float
    weight_decay: float = 0.01
    clip: float = 1.0

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        warmup = max(1, self.steps // 10)
        if step < warmup:
            return self.learning_rate * (step + 1) / warmup
        return self.learning_rate * (self.steps - step) / (self.steps - warmup + 1)


def train(
    model: nn.Module,
    draw: Draw,
    recipe: Recipe,
    seed: int,
    advance: Callable[[float], None] = lambda _: None,
) -> None:
    """Train on cross-entropy at every place that has a label.

    Args:
        model: inputs -> logits [batch, ..., classes].
        draw: makes a batch, inputs and labels [batch, ...]; the label -100 asks for nothing.
        seed: of the batches.
        advance: called with the share of steps that are done.
    """
    model.train()
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(
        weights, recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
    )
    generator = torch.Generator().manual_seed(seed)
    for step in range(recipe.steps):
        inputs, labels = draw(generator)
        optimizer.param_groups[0]["lr"] = recipe.rate(step)
        logits = model(inputs)
        loss = F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, recipe.clip)
        optimizer.step()
        advance((step + 1) / recipe.steps)


def right_answers(model: nn.Module, inputs: Tensor, labels: Tensor, batch_size: int = 64) -> Tensor:
    """Whether the class with the highest logit is the label, as numbers [batch, ...].

    1.0 where it is, 0.0 where it is not, NaN where the label is -100 and nothing was asked.
    """
    model.eval()
    with torch.no_grad():
        answers = torch.cat([model(part).argmax(-1) for part in inputs.split(batch_size)])
    right = (answers == labels).float()
    return right.masked_fill(labels == IGNORED, float("nan"))
