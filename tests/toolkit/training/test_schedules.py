"""Schedules against transformers' and against the paper's formula, worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
import transformers
from torch import nn

from toolkit.config import TrainConfig
from toolkit.training.schedules import noam_learning_rate, schedule_factor


@pytest.mark.parametrize("total", [1, 2, 7, 100])
@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.33, 1.0])
@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant", "inverse_sqrt"])
def test_schedule_equals_transformers(schedule: str, ratio: float, total: int) -> None:
    warmup = round(ratio * total)
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    make = {
        "linear": lambda: transformers.get_linear_schedule_with_warmup(optimizer, warmup, total),
        "cosine": lambda: transformers.get_cosine_schedule_with_warmup(optimizer, warmup, total),
        "constant": lambda: transformers.get_constant_schedule_with_warmup(optimizer, warmup),
        "inverse_sqrt": lambda: transformers.get_inverse_sqrt_schedule(optimizer, warmup),
    }
    theirs = make[schedule]().lr_lambdas[0]
    train = TrainConfig(schedule=schedule, warmup_ratio=ratio)  # type: ignore[arg-type]
    # Without a warm-up transformers lets the root fall from an arbitrary step 10000 on.
    if schedule == "inverse_sqrt" and warmup == 0:
        expected = [1.0, *(step**-0.5 for step in range(1, total))]
        assert [schedule_factor(s, total, train) for s in range(total)] == pytest.approx(expected)
        return
    for step in range(total):
        assert schedule_factor(step, total, train) == pytest.approx(theirs(step), abs=1e-12)
    if schedule in ("linear", "cosine"):
        assert schedule_factor(total, total, train) == 0.0
    assert all(schedule_factor(step, total, train) > 0 for step in range(max(warmup, 1), total))


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (1, 1 / (math.sqrt(512) * 4000 * math.sqrt(4000))),  # 1.75e-7
        (2000, 2000 / (math.sqrt(512) * 4000 * math.sqrt(4000))),
        (4000, 1 / math.sqrt(512 * 4000)),  # the peak, 6.99e-4
        (16000, 0.5 / math.sqrt(512 * 4000)),  # four times the warm-up: half the peak
        (100_000, 1 / math.sqrt(512 * 100_000)),
    ],
)
def test_the_papers_learning_rate(step: int, expected: float) -> None:
    assert noam_learning_rate(step, d_model=512) == pytest.approx(expected, rel=1e-12)


def test_the_papers_peak_as_a_number() -> None:
    assert noam_learning_rate(4000, 512, 4000) == pytest.approx(6.987712429686843e-4, rel=1e-12)


def test_inverse_sqrt_is_the_papers_shape_scaled_to_its_peak() -> None:
    train = TrainConfig(schedule="inverse_sqrt", warmup_ratio=0.1)
    peak = noam_learning_rate(10, 64, 10)
    for step in range(1, 100):
        expected = noam_learning_rate(step, 64, 10) / peak
        assert schedule_factor(step, 100, train) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("arguments", [(0, 512, 4000), (1, 0, 4000), (1, 512, 0)])
def test_the_papers_formula_starts_at_step_1(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        noam_learning_rate(*arguments)
