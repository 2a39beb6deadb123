"""Padding masks: every type of them, none at all, and rows that hold nothing but padding."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

TYPES_OF_WEIGHTS = [
    torch.float32,
    pytest.param(torch.bfloat16, marks=pytest.mark.slow),
    pytest.param(torch.float16, marks=pytest.mark.slow),
]
TYPES = [torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.float32]


def numbers(output) -> dict[str, Tensor]:
    return {key: value for key, value in output.items() if isinstance(value, Tensor)}


def every_attention(model) -> Iterator[str]:
    """Sets one attention implementation after the other; one round for a model without any."""
    if not model._supports_sdpa:
        yield "none"
        return
    for attn in ("sdpa", "eager", "scratch"):
        model.set_attn_implementation(attn)
        yield attn


def test_the_type_of_a_mask_means_nothing(text) -> None:
    model = text.fresh()
    for attn in every_attention(model):
        batch = text.batch(model.config)
        mask = batch.pop("attention_mask").flip(1)  # at the start, where causal models see it too
        batch["input_ids"] = torch.randint(3, 50, mask.shape)
        with torch.no_grad():
            expected = numbers(model(**batch, attention_mask=mask))
            unmasked = numbers(model(**batch))
            for dtype in TYPES:
                found = numbers(model(**batch, attention_mask=mask.to(dtype)))
                for key, value in expected.items():
                    assert torch.equal(found[key], value), (attn, dtype, key)
        assert any(not torch.equal(unmasked[key], expected[key]) for key in expected)


def test_no_mask_is_a_mask_of_ones(text) -> None:
    model = text.fresh()
    for _ in every_attention(model):
        batch = text.batch(model.config)
        batch.pop("attention_mask")
        ids = torch.randint(3, 50, batch["input_ids"].shape)
        batch["input_ids"] = ids
        with torch.no_grad():
            without = numbers(model(**batch))
            ones = numbers(model(**batch, attention_mask=torch.ones_like(ids)))
        for key, value in without.items():
            torch.testing.assert_close(ones[key], value, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("dtype", TYPES_OF_WEIGHTS, ids=str)
def test_a_row_of_padding_only_stays_finite_and_touches_no_other(
    dtype: torch.dtype, text, training_loss, gradients
) -> None:
    model = text.fresh(initializer_range=0.05, init_std=0.05).to(dtype)
    model.set_packing("off")  # the outputs of padding are compared, too
    for attn in every_attention(model):
        batch = text.batch(model.config)
        batch["attention_mask"][1] = 0
        batch["input_ids"][1] = model.config.pad_token_id or 0
        output = model(**batch)
        training_loss(output).backward()
        assert all(torch.isfinite(value).all() for value in numbers(output).values()), attn
        assert all(torch.isfinite(gradient).all() for gradient in gradients(model).values()), attn
        others = {key: value[[0, 2, 3]] for key, value in batch.items()}
        with torch.no_grad():
            alone = numbers(model(**others))
        near = 1e-5 if dtype == torch.float32 else 2e-2
        for key, value in alone.items():
            if value.ndim:  # not the loss
                rows = numbers(output)[key][[0, 2, 3]]
                torch.testing.assert_close(rows, value, atol=near, rtol=near)
