"""Networks for sequences: who sees whom, and equal sizes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from scratch_models.layers.positions import LearnedPositions, SinusoidalPositions
from toolkit.claims import parallel, recall
from toolkit.claims.sequence_models import (
    LSTMTagger,
    TransformerTagger,
    trained_size,
    width_of_size,
)


def _transformer(position: nn.Module | None, sees: str) -> TransformerTagger:
    torch.manual_seed(0)
    return TransformerTagger(
        5, 3, hidden_size=8, layers=2, heads=2, position=position,
        sees="past" if sees == "past" else "all",
    )  # fmt: skip


def _changes(model: nn.Module, place: int) -> list[bool]:
    """Which places answer otherwise when the token of one place is another."""
    before = torch.tensor([[0, 1, 2, 3, 4, 0]])
    after = before.clone()
    after[0, place] = 1 - after[0, place].clamp(max=1)
    differ = (model(before) - model(after)).abs().amax(-1)[0] > 1e-6
    return [bool(one) for one in differ]


def test_who_sees_whom() -> None:
    assert _changes(_transformer(SinusoidalPositions(6, 8), "past"), 2) == 2 * [False] + 4 * [True]
    assert _changes(_transformer(SinusoidalPositions(6, 8), "all"), 2) == 6 * [True]
    torch.manual_seed(0)
    lstm = LSTMTagger(5, 3, embedding_size=4, hidden_size=6)
    assert _changes(lstm, 2) == 2 * [False] + 4 * [True]


def test_without_positions_order_is_unknown() -> None:
    tokens = torch.tensor([[0, 1, 2, 3, 4, 0]])
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    blind = _transformer(None, "all")
    torch.testing.assert_close(blind(tokens)[:, order], blind(tokens[:, order]))
    told = _transformer(SinusoidalPositions(6, 8), "all")
    assert not torch.allclose(told(tokens)[:, order], told(tokens[:, order]), atol=1e-3)


def test_sizes_by_hand() -> None:
    # token 5*8; a layer: 4 products 8*8+8, 2 norms of 16, feed-forward 8*32+32 and 32*8+8;
    # last norm 16; head 8*3+3
    layer = 4 * (64 + 8) + 2 * 16 + (256 + 32) + (256 + 8)
    assert trained_size(_transformer(None, "all")) == 40 + 2 * layer + 16 + 27
    fixed = _transformer(SinusoidalPositions(6, 8), "all")
    assert trained_size(fixed) == trained_size(_transformer(None, "all"))
    learned = _transformer(LearnedPositions(6, 8), "all")
    assert trained_size(learned) == trained_size(fixed) + 48
    # token 5*4; LSTM 4 gates of 6: 24*4 + 24*6 + two biases; head 6*3+3
    assert trained_size(LSTMTagger(5, 3, embedding_size=4, hidden_size=6)) == 20 + 288 + 21


def test_width_of_size_is_the_nearest() -> None:
    def build(width: int) -> nn.Module:
        return nn.Linear(width, 10)  # 10 * width + 10 parameters

    for wanted in (25, 104, 106, 110, 4000):
        nearest = min(range(1, 500), key=lambda width: abs(10 * width + 10 - wanted))
        assert width_of_size(build, wanted) == nearest
    with pytest.raises(ValueError, match="width 16"):
        width_of_size(build, 1000, widest=16)


@pytest.mark.parametrize("claim", [recall, parallel])
def test_both_networks_are_of_equal_size(claim: object) -> None:
    module = recall if claim is recall else parallel
    sizes = {kind: trained_size(module.build(kind, module.FULL)) for kind in module.KINDS}  # type: ignore[arg-type]
    assert abs(sizes["LSTM"] / sizes["Transformer"] - 1) < 0.02
