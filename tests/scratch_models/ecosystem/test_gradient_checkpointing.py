"""Gradient checkpointing saves memory and changes nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer


@pytest.mark.parametrize("reentrant", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_checkpointing_changes_no_loss_and_no_gradient(
    reentrant: bool, case, training_loss, gradients
) -> None:
    model = case.fresh(dropout=True)
    if not model.supports_gradient_checkpointing:
        with pytest.raises(ValueError, match="does not support activation checkpointing"):
            model.activation_checkpointing_enable()
        return
    model.train()
    batch = case.batch(model.config)
    cached = getattr(model.config, "use_cache", None)
    runs = count_runs(model)

    def step():
        torch.manual_seed(5)  # the dropout is drawn again when a layer runs again
        loss = training_loss(model(**batch))
        loss.backward()
        found = gradients(model)
        model.zero_grad()
        return loss, found, len(runs)

    loss, expected, once = step()
    runs.clear()
    model.activation_checkpointing_enable({"use_reentrant": reentrant})
    if reentrant:
        model.enable_input_require_grads()
    again, found, twice = step()
    # A decoder without its cache takes another way through the same attention.
    torch.testing.assert_close(again, loss, atol=1e-5, rtol=1e-5)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, atol=1e-5, rtol=1e-5)
    assert twice == 2 * once > 0
    assert getattr(model.config, "use_cache", None) == cached


def count_runs(model: nn.Module) -> list[str]:
    """Filled with a name for every time a layer's first norm runs, also in the backward pass."""
    runs: list[str] = []
    for layer in model.modules():
        if isinstance(layer, GradientCheckpointingLayer):
            layer.attention_norm.register_forward_hook(lambda *_: runs.append("norm"))
    return runs
