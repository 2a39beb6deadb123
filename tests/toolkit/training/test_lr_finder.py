"""The search for a learning rate: read off made curves, and done on a model."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from toolkit.batching import Collate
from toolkit.config import Invocation, RunConfig, TrainConfig
from toolkit.errors import RecipeEnds, UserError
from toolkit.evaluation import ClassificationMetric
from toolkit.objectives import Batch, Classification
from toolkit.run import start_run
from toolkit.training.engine import fit
from toolkit.training.lr_finder import conclude, learning_rates, smooth


def test_rates_rise_by_the_same_factor() -> None:
    rates = learning_rates(9)
    assert rates == pytest.approx([1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10])


def test_smoothing_is_a_weighted_mean_of_what_was_seen() -> None:
    losses = [3.0, 1.0, 2.0]
    for count in (1, 2, 3):
        weights = 0.9 ** np.arange(count)[::-1]
        expected = np.average(losses[:count], weights=weights)
        assert smooth(losses)[count - 1] == pytest.approx(expected)
    assert smooth([5.0] * 30) == pytest.approx([5.0] * 30)


def test_the_lowest_and_the_steepest_place_of_a_curve() -> None:
    rates = learning_rates(200)
    place = np.log10(rates)
    # A fall around 1e-4, flat until 1e-2, then a rise.
    losses = 2 - 1 / (1 + np.exp(-4 * (place + 4))) + np.exp(np.clip(3 * (place + 1.5), -50, 3))
    found = conclude(rates, losses.tolist(), "all rates were tried")
    assert 1e-4 < found.steepest < 5e-4  # smoothing comes after by some steps
    assert 3e-3 < found.lowest < 3e-2
    assert found.suggestion == pytest.approx(found.lowest / 10, rel=0.05)


def test_a_loss_that_does_not_fall_gives_no_suggestion() -> None:
    rates = learning_rates(50)
    noise = np.random.default_rng(0).normal(0, 0.01, 50)
    assert conclude(rates, (1 + noise).tolist(), "").suggestion is None
    # The first losses pull the average down and up; that is no slope to speak of.
    falling = np.concatenate([[3.0, 2.0, 2.8], np.linspace(2.8, 1, 47)])
    assert conclude(rates, falling.tolist(), "").steepest >= rates[10]
    rising = conclude(rates, np.linspace(1, 3, 50).tolist(), "")
    assert rising.suggestion is None
    assert rising.lowest == rates[0]


class Linear(nn.Module):
    """Logistic regression: a convex loss, that breaks at large rates."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.out = nn.Linear(3, 2)

    def forward(self, values: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.out(values))


def rows(count: int) -> Any:
    import datasets

    values = np.random.default_rng(0).normal(size=(count, 3))
    return datasets.Dataset.from_dict(
        {"values": values.tolist(), "label": (values.sum(1) > 0).astype(int).tolist()}
    )


def collate(batch: list[dict[str, Any]]) -> Batch:
    return {
        "values": torch.tensor([row["values"] for row in batch]),
        "labels": torch.tensor([row["label"] for row in batch]),
        "index": torch.tensor([row["index"] for row in batch]),
    }


def find(folder: Path, objective: Classification, collate: Collate = collate) -> None:
    config = RunConfig(
        output_dir=str(folder), run_id="a", lr_finder=True,
        train=TrainConfig(batch_size=16, optimizer="sgd", epochs=1, max_grad_norm=None),
    )  # fmt: skip
    run = start_run(Invocation(config, None), "test")
    data = SimpleNamespace(train=rows(64), validation=rows(8))
    fit(run, Linear(), data, objective=objective, collate=collate, metric=ClassificationMetric(2))


@pytest.mark.usefixtures("fresh_accelerator")
def test_a_model_is_tried_at_all_rates_and_nothing_is_trained_for_keeps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RecipeEnds):
        find(tmp_path, Classification())
    assert [path.name for path in (tmp_path / "test").iterdir()] == ["lr-finder-a"]
    folder = tmp_path / "test" / "lr-finder-a"
    assert (folder / "learning_rates.svg").read_text().startswith("<?xml")
    found = json.loads((folder / "learning_rates.json").read_text())
    # 64 rows are four steps; the search went round the data many times.
    steps = len(found["losses"])
    assert 50 < steps <= 100
    assert found["learning_rates"] == pytest.approx(learning_rates()[:steps])
    assert found["smoothed"] == pytest.approx(smooth(found["losses"]))
    assert 1e-3 < found["suggestion"] < 1
    printed = capsys.readouterr().out
    assert f"--train.learning_rate {found['suggestion']:g}" in printed

    # The same by hand: the rates in turn, on the batches in their order.
    first = Linear()
    loss = nn.functional.cross_entropy(
        first(torch.tensor(rows(64)["values"][:])).logits, torch.tensor(rows(64)["label"][:])
    )
    assert np.mean(found["losses"][:4]) == pytest.approx(loss.item(), abs=1e-4)


@pytest.mark.usefixtures("fresh_accelerator")
def test_a_folder_that_cannot_be_made_is_said_before_any_step(tmp_path: Path) -> None:
    (tmp_path / "test").write_text("a file")
    with pytest.raises(UserError, match="cannot make the folder"):
        find(tmp_path, Breaks(0))


class Breaks(Classification):
    """Not a number from some step on."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        self.left -= 1
        return super().loss(model, batch) * (float("nan") if self.left < 0 else 1.0)


@pytest.mark.usefixtures("fresh_accelerator")
def test_a_loss_that_is_no_number_ends_the_search_but_at_the_lowest_rates_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RecipeEnds):
        find(tmp_path, Breaks(30))
    found = json.loads((tmp_path / "test/lr-finder-a/learning_rates.json").read_text())
    assert len(found["losses"]) == 30
    assert "NaN or infinite" in found["stopped"]
    with pytest.raises(UserError, match="the loss became nan in step 1"):
        find(tmp_path, Breaks(0))
