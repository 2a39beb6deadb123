"""Mixed precision on a CPU: finite, near single precision, and HuggingFace's numbers."""

from __future__ import annotations

import pytest
import torch
from transformers import PreTrainedModel

from scratch_models.hub.mapping import TransposedLinears, table_of

TYPES = [torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.slow)]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_step_under_autocast_stays_finite_and_near_single_precision(
    dtype: torch.dtype, case, training_loss, gradients
) -> None:
    model = case.fresh(initializer_range=0.05, init_std=0.05).train()
    batch = case.batch(model.config)
    single = training_loss(model(**batch))
    with torch.autocast("cpu", dtype=dtype):
        loss = training_loss(model(**batch))
    loss.backward()
    torch.testing.assert_close(loss.float(), single, atol=3e-2, rtol=3e-2)
    found = gradients(model)
    assert found
    assert all(torch.isfinite(gradient).all() for gradient in found.values())


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_values_under_autocast_are_huggingface_s(dtype: torch.dtype, twin) -> None:
    scratch, reference = twin.pair(attn="sdpa")
    batch = twin.batch(scratch.config)
    with torch.no_grad(), torch.autocast("cpu", dtype=dtype):
        ours, theirs = scratch(**batch), reference(**batch)
    # Weights that lie the other way round are multiplied in another order.
    near = 1e-5 if not transposed(scratch) else 8 * torch.finfo(dtype).eps
    for key, expected in theirs.items():
        if isinstance(expected, torch.Tensor):
            assert ours[key].dtype == expected.dtype
            torch.testing.assert_close(ours[key], expected, atol=near, rtol=near)


def transposed(model: PreTrainedModel) -> bool:
    rows = (row for module in model.modules() for row in table_of(type(module)))
    return any(isinstance(row, TransposedLinears) for row in rows)
