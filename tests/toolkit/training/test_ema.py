"""The average of the weights: by hand, in the training loop, and after a resume."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pytest
import torch
from torch import nn

from toolkit.arguments import load_config
from toolkit.config import Invocation, RunConfig, TrainConfig, check_values
from toolkit.errors import UserError
from toolkit.evaluation import ClassificationMetric
from toolkit.objectives import Batch, Classification
from toolkit.run import start_run
from toolkit.training.ema import WeightAverage
from toolkit.training.engine import FitResult, fit


class Net(nn.Module):
    """With a batch norm, which has what it measures in buffers, and a frozen weight."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.dropout = nn.Dropout(0.2)
        self.out = nn.Linear(6, 2)
        self.out.bias.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.out(self.dropout(self.norm(self.first(x)).relu())))


def test_the_average_by_hand() -> None:
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(1.0)
    average = WeightAverage(model, decay=0.5)
    by_hand, values = 1.0, [3.0, -2.0, 0.5, 8.0, 1.0, 4.0, 2.0, 6.0, 5.0, 7.0]
    for number, value in enumerate(values, start=1):
        with torch.no_grad():
            model.weight.fill_(value)
        average.update()
        keep = min(0.5, (1 + number) / (10 + number))
        by_hand = keep * by_hand + (1 - keep) * value
        assert float(average.averages["weight"]) == pytest.approx(by_hand, rel=1e-6)
    assert (1 + 8) / (10 + 8) == 0.5  # both sides of the minimum were taken
    with average.in_place():
        assert model.weight.item() == pytest.approx(by_hand, rel=1e-6)
    assert model.weight.item() == 7.0


def test_what_is_averaged() -> None:
    average = WeightAverage(Net(), 0.9)
    assert set(average.averages) == {
        "first.weight", "first.bias", "norm.weight", "norm.bias", "norm.running_mean",
        "norm.running_var", "out.weight",
    }  # fmt: skip


def rows(count: int, seed: int) -> datasets.Dataset:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 4, generator=generator)
    return datasets.Dataset.from_dict({"x": x.tolist(), "label": (x.sum(1) > 0).long().tolist()})


DATA = SimpleNamespace(train=rows(50, 0), validation=rows(20, 1))


def collate(examples: list[dict[str, Any]]) -> Batch:
    return {
        "x": torch.tensor([row["x"] for row in examples]),
        "labels": torch.tensor([row["label"] for row in examples]),
        "index": torch.tensor([row["index"] for row in examples]),
    }


class Killed(BaseException):
    pass


class Objective(Classification):
    def __init__(self, model: nn.Module, kill_at: int | None = None) -> None:
        super().__init__()
        self.model, self.kill_at, self.weights, self.evaluated = model, kill_at, [], []

    def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        self.weights.append(self.model.first.weight.detach().clone())
        if len(self.weights) == self.kill_at:
            raise Killed
        return super().loss(model, batch)

    def outputs(self, model: nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
        self.evaluated.append(self.model.first.weight.detach().clone())
        return super().outputs(model, batch)


@pytest.fixture
def train(fresh_accelerator: None, tmp_path: Path) -> Callable[..., tuple[FitResult, Objective]]:
    settings = TrainConfig(
        epochs=2, batch_size=8, learning_rate=0.05, evaluate_every=7, save_every=3, log_every=1
    )

    def start(
        name: str, *, resume: bool = False, kill_at: int | None = None, **changes: Any
    ) -> tuple[FitResult, Objective]:
        from accelerate.state import AcceleratorState, GradientState

        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
        directory = tmp_path / "net" / name
        if resume:
            invocation = Invocation(load_config(RunConfig, directory / "config.yaml"), directory)
        else:
            config = RunConfig(
                train=replace(settings, **changes), output_dir=str(tmp_path), run_id=name
            )
            invocation = Invocation(config, None)
        model = Net()
        objective = Objective(model, kill_at)
        run = start_run(invocation, "net")
        result = fit(
            run, model, DATA, objective=objective, collate=collate, metric=ClassificationMetric(2)
        )
        return result, objective

    return start


def test_the_averaged_weights_are_evaluated_and_returned(train: Callable[..., Any]) -> None:
    result, objective = train("a", ema=0.6, max_steps=6, evaluate_every=6)
    by_hand = objective.weights[0].clone()
    weights_after = [*objective.weights[1:], None]
    for number, weight in enumerate(weights_after[:-1], start=1):
        keep = min(0.6, (1 + number) / (10 + number))
        by_hand = keep * by_hand + (1 - keep) * weight
    plain, last = train("b", max_steps=6, evaluate_every=6)
    keep = min(0.6, 7 / 16)
    by_hand = keep * by_hand + (1 - keep) * plain.model.first.weight.detach()
    assert torch.allclose(objective.evaluated[0], by_hand, atol=1e-6)
    assert torch.equal(result.model.first.weight, objective.evaluated[0])
    # training itself goes on with the weights as they are
    for one, other in zip(objective.weights, last.weights, strict=True):
        assert torch.equal(one, other)
    assert not torch.allclose(by_hand, plain.model.first.weight, atol=1e-3)


@pytest.mark.parametrize("kill_at", [5, 9, 12])
def test_a_killed_run_has_the_same_average_after_a_resume(
    train: Callable[..., Any], kill_at: int
) -> None:
    whole, _ = train("whole", ema=0.9)
    with pytest.raises(Killed):
        train("killed", ema=0.9, kill_at=kill_at)
    resumed, _ = train("killed", resume=True)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name


def test_the_best_average_comes_back_at_the_end(train: Callable[..., Any]) -> None:
    result, objective = train("a", ema=0.5, epochs=6, evaluate_every=5, learning_rate=0.5)
    steps = range(5, 43, 5)
    best = result.state.best_step
    assert best in steps
    assert best != result.total_steps  # otherwise nothing comes back
    assert torch.equal(result.model.first.weight, objective.evaluated[best // 5 - 1])


# A budget in seconds


def test_seconds_end_the_training_and_the_schedule(
    train: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that makes every step take one second."""
    import json

    ticks = iter(range(10_000))
    fake = SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    monkeypatch.setattr("toolkit.clock.time", fake)
    result, _ = train(
        "a", max_seconds=10.0, epochs=100, schedule="linear", warmup_ratio=0.2, evaluate_every=1000
    )
    assert result.state.step == 10
    assert result.state.best_step == 10  # evaluated and saved at the end
    lines = (tmp_path / "net" / "a" / "metrics.jsonl").read_text().splitlines()
    rates = [json.loads(line)["learning_rate"] for line in lines if "learning_rate" in line]
    assert rates[0] == 0
    assert rates[2] == pytest.approx(0.05)  # a fifth of the time is warm-up
    assert rates[9] == pytest.approx(0.05 / 8)  # nearly nothing in the last step
    assert rates[2:] == sorted(rates[2:], reverse=True)


def test_steps_end_the_training_where_they_come_first(train: Callable[..., Any]) -> None:
    result, _ = train("a", max_seconds=1000.0, max_steps=3)
    assert result.state.step == 3


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({"ema": 1.0}, "--train.ema 1.0"), ({"max_seconds": 0.0}, "--train.max_seconds 0.0")],
)
def test_values_that_cannot_be_are_refused(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        check_values(RunConfig(train=TrainConfig(**changes)))


def test_sgd_is_nesterovs_and_spares_biases() -> None:
    from toolkit.training.optimizers import build_optimizer

    optimizer = build_optimizer(Net(), TrainConfig(optimizer="sgd", weight_decay=0.1))
    assert isinstance(optimizer, torch.optim.SGD)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0]
    assert all(group["nesterov"] and group["momentum"] == 0.9 for group in optimizer.param_groups)
