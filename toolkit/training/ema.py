"""An exponential moving average of the weights, which is evaluated and saved in their place.

Polyak and Juditsky 1992; for image models with this form of warm-up see torch's and TensorFlow's
own averages: early on the average forgets faster, min(decay, (1 + n) / (10 + n)) after n updates,
so that random first weights do not stay in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class WeightAverage:
    """The average over updates of the trained parameters and of what layers measure (batch norms).

    Accelerate saves and loads it with a checkpoint (`register_for_checkpointing`).

    Args:
        model: its tensors are read and, on request, exchanged for the averages.
        decay: share of the average that stays at every update.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay, self.updates = decay, 0
        self.tensors = _averaged(model)
        self.averages = {name: value.detach().clone() for name, value in self.tensors.items()}

    @torch.no_grad()
    def update(self) -> None:
        """Take the weights after one more update in."""
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for name, value in self.tensors.items():
            self.averages[name].lerp_(value.detach(), 1 - decay)

    @torch.no_grad()
    def exchange(self) -> None:
        """Put the averages into the model and what was there into their place."""
        for name, value in self.tensors.items():
            kept = value.detach().clone()
            value.copy_(self.averages[name])
            self.averages[name] = kept

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside the block the model has the averages as its weights."""
        self.exchange()
        try:
            yield
        finally:
            self.exchange()

    def state_dict(self) -> dict[str, Any]:
        """The averages and the number of updates."""
        return {"updates": self.updates, "averages": self.averages}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.updates = state["updates"]
        for name, value in self.averages.items():
            value.copy_(state["averages"][name])


def _averaged(model: nn.Module) -> dict[str, Tensor]:
    """Parameters that are trained, and buffers of real numbers."""
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    measured = {name: b for name, b in model.named_buffers() if b.is_floating_point()}
    return trained | measured
