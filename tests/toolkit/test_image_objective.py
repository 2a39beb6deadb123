"""The loss of mixed and smoothed labels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from torch import nn

from toolkit.objectives import Classification


class Given(nn.Module):
    """Says the same whatever it is shown."""

    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, pixel_values: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.logits)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("mixed", [False, True])
def test_summed_cross_entropy(smoothing: float, mixed: bool) -> None:
    logits = torch.tensor([[2.0, -1.0, 0.5], [0.1, 0.2, -3.0]])
    targets = np.array([[0.7, 0.0, 0.3], [0.0, 1.0, 0.0]] if mixed else [[0, 0, 1.0], [1, 0, 0]])
    labels = torch.tensor(targets, dtype=torch.float32) if mixed else torch.tensor([2, 0])
    batch = {"pixel_values": torch.zeros(2), "labels": labels}
    objective = Classification(smoothing)
    smoothed = targets * (1 - smoothing) + smoothing / 3
    expected = -(smoothed * log_softmax(logits.numpy(), axis=1)).sum()
    assert objective.loss(Given(logits), batch).tolist() == [pytest.approx(expected, rel=1e-6)]
    assert objective.count(batch) == [2]


def test_what_is_reported_is_not_smoothed() -> None:
    logits = torch.tensor([[2.0, -1.0, 0.5]])
    batch = {"pixel_values": torch.zeros(1), "labels": torch.tensor([1])}
    outputs = Classification(0.1).outputs(Given(logits), batch)
    expected = -log_softmax(logits.numpy(), axis=1)[0, 1]
    assert outputs["loss"].tolist() == [pytest.approx(expected, rel=1e-6)]
