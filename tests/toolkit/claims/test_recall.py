"""Claim 4: its task by brute force, its rule, and that it runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from toolkit.claims import recall
from toolkit.claims.claim import Claim, Finding, Verdict
from toolkit.claims.over_seeds import Spread
from toolkit.claims.recall import LSTM, TOKENS, TRANSFORMER, decide, mean_by_distance, task


def test_answers_stood_so_many_places_before_the_end() -> None:
    distances, asked = 7, 4
    inputs, labels, wanted = task(5, distances, asked, torch.Generator().manual_seed(0))
    assert inputs.shape == labels.shape == (5, distances + asked)
    for row in range(5):
        told = inputs[row, :distances].tolist()
        assert max(told) < TOKENS
        assert len(set(wanted[row].tolist())) == asked
        assert labels[row, :distances].tolist() == [-100] * distances
        for number in range(asked):
            distance = int(wanted[row, number])
            assert int(inputs[row, distances + number]) == TOKENS + distance - 1
            assert int(labels[row, distances + number]) == told[-distance]


def test_all_distances_are_asked_for_alike() -> None:
    _, _, wanted = task(4000, 8, 4, torch.Generator().manual_seed(0))
    shares = torch.bincount(wanted.flatten(), minlength=9)[1:] / 4000
    assert (shares - 0.5).abs().max() < 0.04  # 5 standard errors


def test_mean_by_distance() -> None:
    right = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    wanted = torch.tensor([[1, 2], [2, 4]])
    found = mean_by_distance(right, wanted, 4)
    np.testing.assert_array_equal(found, [1.0, 0.5, np.nan, 1.0])
    near, far = recall.near_and_far(np.array([1.0, 0.8, 0.5, 0.5, 0.3, 0.1]), 2)
    assert (near, far) == (0.9, 0.2)


def test_rule() -> None:
    near = {LSTM: 0.9, TRANSFORMER: 1.0}
    much, nothing = Spread.of([0.5, 0.52, 0.54]), Spread.of([0.0, 0.0, 0.0])
    unclear = Spread.of([-0.2, 0.1, 0.4])
    assert decide(near, {LSTM: much, TRANSFORMER: nothing}) is Verdict.HOLDS
    assert decide(near, {LSTM: much, TRANSFORMER: much}) is Verdict.PARTLY
    assert decide(near, {LSTM: nothing, TRANSFORMER: nothing}) is Verdict.PARTLY
    assert decide(near, {LSTM: nothing, TRANSFORMER: much}) is Verdict.FAILS
    assert decide(near, {LSTM: unclear, TRANSFORMER: unclear}) is Verdict.UNDECIDED
    never = {LSTM: 0.2, TRANSFORMER: 1.0}
    assert decide(never, {LSTM: much, TRANSFORMER: nothing}) is Verdict.UNDECIDED


def test_quick_finding(quick_finding: Callable[[Claim], Finding]) -> None:
    data = quick_finding(recall.CLAIM).data
    assert data["distances"] == list(range(1, 9))
    assert set(data["learning_rate"].values()) <= set(recall.RATES)
    assert [len(one) for one in data[LSTM]["by_seed"]] == [8, 8]
