"""Sinusoidal positions: both layouts against their formulas, and beyond their table."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import MarianConfig, MarianModel

from scratch_models.layers.positions import (
    SinusoidalPositions,
    interleaved_sinusoids,
    sinusoids_in_halves,
)


def by_hand(position: int, dim: int, layout: str) -> list[float]:
    angles = [position / 10000 ** (2 * i / dim) for i in range((dim + 1) // 2)]
    sines = [math.sin(angle) for angle in angles]
    cosines = [math.cos(angle) for angle in angles[: dim // 2]]
    if layout == "halves":
        return sines + cosines
    return [(sines if i % 2 == 0 else cosines)[i // 2] for i in range(dim)]


LAYOUTS = {"interleaved": interleaved_sinusoids, "halves": sinusoids_in_halves}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dim", [1, 2, 7, 16])
def test_a_table_goes_on_beyond_its_end(dim: int, layout: str) -> None:
    table = SinusoidalPositions(16, dim, LAYOUTS[layout])
    before = table.weight.clone()
    vectors = table(40)
    assert vectors.shape == (1, 40, dim)
    assert torch.equal(vectors[0, :16], before)
    assert torch.equal(table.weight, before)
    for position in (0, 1, 15, 16, 39):
        expected = torch.tensor(by_hand(position, dim, layout))
        torch.testing.assert_close(vectors[0, position], expected, atol=1e-6, rtol=0)
    chosen = torch.tensor([[3, 39, 16], [2000, 15, 0]])
    for row, ids in enumerate(chosen.tolist()):
        expected = torch.tensor([by_hand(position, dim, layout) for position in ids])
        torch.testing.assert_close(table(3, chosen)[row], expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_short_table_equals_a_long_one(layout: str) -> None:
    short, long = (SinusoidalPositions(n, 12, LAYOUTS[layout]) for n in (16, 40))
    assert torch.equal(short(40), long(40))


def test_what_a_checkpoint_stored_is_used_within_the_table() -> None:
    table = SinusoidalPositions(4, 6)
    with torch.no_grad():
        table.weight.fill_(7.0)
    vectors = table(6)
    assert (vectors[0, :4] == 7).all()
    assert torch.equal(vectors[0, 4:], interleaved_sinusoids(torch.tensor([4, 5]), 6))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("length", "dim"), [(100, 32), (70, 33), pytest.param(512, 512, marks=pytest.mark.slow)]
)
def test_marians_table_bit_for_bit(length: int, dim: int, dtype: torch.dtype) -> None:
    config = MarianConfig(
        d_model=dim, max_position_embeddings=length, vocab_size=3, pad_token_id=0,
        encoder_layers=0, decoder_layers=0, encoder_attention_heads=1, decoder_attention_heads=1,
    )  # fmt: skip
    theirs = MarianModel._from_config(config, dtype=dtype).encoder.embed_positions.weight
    torch.set_default_dtype(dtype)
    try:
        ours = SinusoidalPositions(length, dim, sinusoids_in_halves).weight
    finally:
        torch.set_default_dtype(torch.float32)
    assert ours.dtype == dtype
    assert torch.equal(ours, theirs)
    assert not ours.requires_grad


def test_a_compiled_table_goes_on_too() -> None:
    table = SinusoidalPositions(16, 8)
    compiled = torch.compile(table, fullgraph=True, backend="eager")
    ids = torch.tensor([[3, 20]])
    assert torch.equal(compiled(40), table(40))
    assert torch.equal(compiled(2, ids), table(2, ids))
