"""Claim 10: splits, equal budgets, its rule, and that it runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from toolkit.claims import small_images
from toolkit.claims.claim import Claim, Finding, Verdict
from toolkit.claims.over_seeds import Spread
from toolkit.claims.small_images import (
    CNN,
    FULL,
    VIT,
    Images,
    decide,
    find_budget,
    read_splits,
    some_images,
    step_flops,
    steps_of_budget,
)


def test_splits_hold_every_digit_once() -> None:
    data = read_splits()
    assert [len(part.labels) for part in data] == [1167, 180, 450]
    assert data.train.pixels.shape == (1167, 3, 8, 8)
    assert float(data.train.pixels.mean()) == pytest.approx(0, abs=1e-5)
    assert float(data.train.pixels.std()) == pytest.approx(1, abs=1e-3)
    digits = load_digits()
    told = torch.cat([part.pixels[:, 0] for part in data]).flatten(1).numpy()
    raw = np.round(digits.images * (255 / 16)).reshape(1797, -1)
    scaled = (raw - raw.mean()) / raw.std()
    # Standardised by training images alone: the same up to a scale and a shift.
    order = np.lexsort(np.round(told - told.min(), 3).T), np.lexsort(np.round(scaled, 6).T)
    ours, theirs = told[order[0]], scaled[order[1]]
    assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.99


def test_fewer_images_are_part_of_more() -> None:
    data = read_splits()
    few, more = some_images(data.train, 10, 3), some_images(data.train, 30, 3)
    assert torch.equal(few.pixels, more.pixels[:10])
    assert not torch.equal(few.pixels, some_images(data.train, 10, 4).pixels)


def test_flops_of_a_step_by_hand() -> None:
    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(192, 10)

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            return self.linear(pixels.flatten(1))

    batch = Images(torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3]))
    # Forward, and backward the gradient of the weights; that of the input is not asked for.
    assert step_flops(Flat(), batch) == 2 * (2 * 4 * 192 * 10)


def test_both_networks_have_the_same_budget() -> None:
    budget = find_budget(FULL, read_splits())
    assert budget.steps[CNN] == FULL.cnn_steps
    assert abs(budget.total(VIT) / budget.total(CNN) - 1) < 0.02
    assert steps_of_budget(1000, 300) == 3
    assert steps_of_budget(10, 300) == 1


def test_rule() -> None:
    better, worse = Spread.of([0.05, 0.06, 0.07]), Spread.of([-0.05, -0.06, -0.07])
    unclear = Spread.of([-0.1, 0.0, 0.1])
    assert decide([better, better]) is Verdict.HOLDS
    assert decide([better, unclear]) is Verdict.PARTLY
    assert decide([worse, worse]) is Verdict.FAILS
    assert decide([unclear, worse]) is Verdict.UNDECIDED


def test_quick_finding(quick_finding: Callable[[Claim], Finding]) -> None:
    data = quick_finding(small_images.CLAIM).data
    assert data["training_images"] == [20, 40]
    assert [len(one["values"]) for one in data["accuracy"][CNN]] == [2, 2]
    assert len(data["cnn_minus_vit"]) == 2
