"""Claim 3: its task, its rule, and that it runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from scratch_models.layers.positions import LearnedPositions
from toolkit.claims import extrapolation
from toolkit.claims.claim import Claim, Finding, Verdict
from toolkit.claims.extrapolation import (
    CHANCE,
    LEARNED,
    OFFSET,
    QUICK,
    SINUSOIDAL,
    Accuracies,
    decide,
    share_kept,
    task,
)
from toolkit.claims.over_seeds import Spread
from toolkit.claims.short_training import right_answers


def test_answers_are_the_tokens_before() -> None:
    inputs, labels = task(3, 9, torch.Generator().manual_seed(0))
    for row in range(3):
        for place in range(9):
            told = -100 if place < OFFSET else int(inputs[row, place - OFFSET])
            assert int(labels[row, place]) == told


class _KnowsTheFirst(torch.nn.Module):
    """Answers right at the first places of a sequence, and with no token beyond."""

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        logits = torch.zeros(*input_ids.shape, extrapolation.TOKENS + 1)
        logits[..., -1] = 0.5
        for place in range(OFFSET, min(QUICK.length, input_ids.shape[1])):
            logits[torch.arange(len(input_ids)), place, input_ids[:, place - OFFSET]] = 1.0
        return logits


def test_accuracy_beyond_is_of_the_places_never_trained() -> None:
    tested = extrapolation.measure_lengths(
        _KnowsTheFirst(), QUICK, torch.Generator().manual_seed(1)
    )
    known = QUICK.length - OFFSET
    assert tested.overall == pytest.approx([known / (n - OFFSET) for n in QUICK.lengths])
    assert tested.beyond == [0.0] * (len(QUICK.lengths) - 1)
    assert tested.mean_beyond == 0.0


def test_right_answers_leave_out_what_is_not_asked() -> None:
    model = _KnowsTheFirst()
    inputs, labels = task(2, QUICK.length, torch.Generator().manual_seed(0))
    right = right_answers(model, inputs, labels)
    assert right[:, :OFFSET].isnan().all()
    assert (right[:, OFFSET:] == 1).all()


def test_rule() -> None:
    learnt = {SINUSOIDAL: 1.0, LEARNED: 0.95}
    further = Spread.of([0.30, 0.31, 0.32])
    half = CHANCE + 0.5 * (1 - CHANCE)
    assert decide(learnt, {SINUSOIDAL: half + 0.01}, further) is Verdict.HOLDS
    assert decide(learnt, {SINUSOIDAL: half - 0.01}, further) is Verdict.PARTLY
    unclear = Spread.of([-0.2, 0.1, 0.3])
    assert decide(learnt, {SINUSOIDAL: 0.9}, unclear) is Verdict.UNDECIDED
    worse = Spread.of([-0.30, -0.31, -0.32])
    assert decide(learnt, {SINUSOIDAL: 0.9}, worse) is Verdict.FAILS
    unlearnt = {SINUSOIDAL: 1.0, LEARNED: 0.89}
    assert decide(unlearnt, {SINUSOIDAL: 0.9}, further) is Verdict.UNDECIDED


def test_share_kept() -> None:
    assert share_kept(1.0, CHANCE) == 0.0
    assert share_kept(1.0, 1.0) == 1.0
    assert share_kept(1.0, 0.01) == 0.0  # not below
    assert share_kept(CHANCE, 0.5) == 0.0  # nothing was known


def test_a_table_of_the_training_length_refuses_longer_input() -> None:
    with pytest.raises(ValueError, match="has positions for 8"):
        LearnedPositions(8, 4)(9)


def test_rows_beyond_training_stay_as_drawn() -> None:
    torch.manual_seed(0)
    model = extrapolation.build(LEARNED, QUICK)
    assert isinstance(model.position, LearnedPositions)
    drawn = model.position.weight.detach().clone()
    extrapolation.train(
        model, lambda g: task(4, QUICK.length, g), extrapolation.Recipe(2, 1e-2, 0.0), 0
    )
    moved = (model.position.weight.detach() != drawn).any(dim=1)
    assert moved[: QUICK.length].all()
    assert not moved[QUICK.length :].any()


def test_quick_finding(quick_finding: Callable[[Claim], Finding]) -> None:
    data = quick_finding(extrapolation.CLAIM).data
    assert data["test_lengths"] == [8, 10, 12, 16, 24, 32]
    for kind in extrapolation.KINDS:
        assert len(data[kind]["overall"]) == 6
        assert len(data[kind]["beyond"]) == 5


def test_report_of_made_up_numbers() -> None:
    tested = {
        kind: [Accuracies([1.0] * 6, [beyond + 0.01 * seed] * 5) for seed in range(3)]
        for kind, beyond in ((SINUSOIDAL, 0.7), (LEARNED, 0.1), (extrapolation.NONE, 0.1))
    }
    finding = extrapolation.report(QUICK, tested)
    assert finding.verdict is Verdict.HOLDS
    assert finding.data["sinusoidal_minus_learned"]["mean"] == pytest.approx(0.6)
    assert finding.data["kept"][SINUSOIDAL] == pytest.approx((0.71 - 1 / 16) / (15 / 16))
