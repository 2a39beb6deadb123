"""Models are copied, pickled, moved to other types: the same model comes out."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import Tensor


def tensors(output) -> dict[str, Tensor]:
    return {key: value for key, value in output.items() if isinstance(value, Tensor)}


@pytest.mark.parametrize("how", ["deepcopy", pytest.param("pickle", marks=pytest.mark.slow)])
def test_a_copy_computes_the_same_and_shares_nothing_with_its_model(how: str, case) -> None:
    model = case.fresh()
    twin = copy.deepcopy(model) if how == "deepcopy" else pickle.loads(pickle.dumps(model))
    batch = case.batch(model.config)
    with torch.no_grad():
        expected, found = tensors(model(**batch)), tensors(twin(**batch))
    for key, value in expected.items():
        assert torch.equal(found[key], value), key
    own = {p.data_ptr() for p in model.parameters()}
    assert own.isdisjoint(p.data_ptr() for p in twin.parameters())
    # What was tied is tied in the copy: its parameters are counted once.
    assert twin.num_parameters() == model.num_parameters()
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
        again = tensors(model(**batch))
    for key, value in expected.items():
        assert torch.equal(again[key], value), key


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float16,
        pytest.param(torch.bfloat16, marks=pytest.mark.slow),
        pytest.param(torch.float64, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_type_of_a_model_is_the_type_of_all_its_outputs(dtype: torch.dtype, case) -> None:
    model = case.fresh(initializer_range=0.05, init_std=0.05)
    batch = case.batch(model.config)
    with torch.no_grad():
        single = tensors(model(**batch))
        model = model.half() if dtype == torch.float16 else model.to(dtype)
        batch = {k: v.to(dtype) if v.is_floating_point() else v for k, v in batch.items()}
        found = tensors(model(**batch))
    assert model.dtype == dtype
    assert all(p.dtype == dtype for p in model.parameters())
    near = {torch.float64: 1e-5, torch.float16: 3e-2, torch.bfloat16: 2e-1}[dtype]
    for key, value in single.items():
        if key != "loss":  # of causal models: always in single precision
            assert found[key].dtype == dtype, key
        torch.testing.assert_close(found[key].float(), value, atol=near, rtol=near)
