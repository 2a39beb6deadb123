"""Memory of forward and backward passes, against a computation by hand."""

from __future__ import annotations

import torch
from torch import nn

from toolkit.training.activations import LiveMemory, count_saved_tensors

FLOAT = 4


def test_what_is_saved_is_counted_once_and_without_the_parameters() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    inputs = torch.randn(32, 8)
    with count_saved_tensors(model) as saved:
        model(inputs).sum().backward()
    # The inputs, and the result of ReLU, which it and the second layer both keep.
    assert saved.bytes == FLOAT * 32 * (8 + 16)


def test_views_share_their_storage() -> None:
    weight = nn.Linear(1, 1)
    value = torch.randn(10, requires_grad=True)
    with count_saved_tensors(weight) as saved:
        kept = value.exp()
        (kept[:5] * kept[5:]).sum().backward()
    assert saved.bytes == FLOAT * 10


def test_live_memory_knows_the_most_at_once() -> None:
    model = nn.Linear(1, 1)
    with LiveMemory(model) as live:
        first = torch.zeros(1000)
        second = first + 1
        del first
        third = second + 1
        del second, third
        torch.zeros(10)
    assert live.peak == FLOAT * 2000
    assert live.now == 0


def test_live_memory_leaves_out_the_model_and_its_gradients() -> None:
    model = nn.Linear(100, 100, bias=False)
    model.weight.grad = torch.zeros_like(model.weight)
    inputs = torch.randn(1, 100)
    with LiveMemory(model) as live:
        result = model(inputs)
        result.backward(torch.ones_like(result))
    # The result and its gradient; the new gradient of the weight until it is added.
    assert live.peak == FLOAT * (100 + 100 + 100 * 100)
    assert live.now == FLOAT * 100
    del result
    assert live.now == 0


def test_the_values_are_as_without_it() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.GELU())
    inputs, gradients = torch.randn(4, 8), []
    for watched in (False, True):
        torch.manual_seed(1)
        model.zero_grad()
        if watched:
            with LiveMemory(model), count_saved_tensors(model):
                model(inputs).sum().backward()
        else:
            model(inputs).sum().backward()
        gradients.append([p.grad for p in model.parameters()])
    assert all(map(torch.equal, *gradients))
