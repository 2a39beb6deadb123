"""Attention rollout against a computation by hand and against powers of a matrix."""

from __future__ import annotations

import pytest
import torch

from toolkit.attention.rollout import rollout


def test_two_layers_by_hand() -> None:
    first = [[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]  # mean: [.5 .5], [.5 .5]
    second = [[[0.2, 0.8], [1.0, 0.0]], [[0.4, 0.6], [1.0, 0.0]]]  # mean: [.3 .7], [1 0]

    found = rollout(torch.tensor([first, second]))

    # 0.5 mean + 0.5 I: [.75 .25], [.25 .75] and [.65 .35], [.5 .5]
    torch.testing.assert_close(found[0], torch.tensor([[0.75, 0.25], [0.25, 0.75]]))
    # row 1: .65 * [.75 .25] + .35 * [.25 .75] = [.575 .425]; row 2: the mean of both = [.5 .5]
    torch.testing.assert_close(found[1], torch.tensor([[0.575, 0.425], [0.5, 0.5]]))


def test_equal_layers_give_the_powers_of_one() -> None:
    weights = torch.rand(1, 3, 6, 6, generator=torch.Generator().manual_seed(0)).softmax(-1)

    found = rollout(weights.expand(4, -1, -1, -1))

    mixed = (weights[0].double().mean(0) + torch.eye(6)) / 2
    for number in range(4):
        expected = torch.linalg.matrix_power(mixed, number + 1).float()
        torch.testing.assert_close(found[number], expected)
    torch.testing.assert_close(found.sum(-1), torch.ones(4, 6))


def test_what_looks_back_only_stays_so() -> None:
    weights = torch.rand(3, 2, 5, 5).masked_fill(torch.ones(5, 5).triu(1).bool(), -1e9).softmax(-1)
    assert not rollout(weights).triu(1).any()


def test_attention_between_two_texts_has_no_rollout() -> None:
    with pytest.raises(ValueError, match="tokens, tokens"):
        rollout(torch.rand(2, 2, 3, 4))
