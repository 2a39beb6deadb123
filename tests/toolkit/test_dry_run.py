"""What a dry run says of settings, data, steps, memory, disk and time, against counts by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from torch import nn

from toolkit.arguments import parse_arguments
from toolkit.config import Invocation, RunConfig, TrainConfig
from toolkit.data_facts import describe_data
from toolkit.dry_run import describe_settings
from toolkit.errors import RecipeEnds, UserError
from toolkit.evaluation import ClassificationMetric
from toolkit.objectives import Batch, Classification
from toolkit.run import start_run
from toolkit.training import forecast
from toolkit.training.engine import fit

pytestmark = pytest.mark.usefixtures("fresh_accelerator")

WIDTH = 16


class Net(nn.Module):
    """An embedding, frozen, and two layers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(30, WIDTH).requires_grad_(False)
        self.inner = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        return SimpleNamespace(logits=self.out(self.inner(self.embed(input_ids)).relu().mean(1)))


def make_rows(count: int, seed: int) -> datasets.Dataset:
    generator = np.random.default_rng(seed)
    ids = [generator.integers(1, 30, generator.integers(2, 20)).tolist() for _ in range(count)]
    return datasets.Dataset.from_dict(
        {
            "input_ids": ids,
            "label": [int(sum(row) / len(row) > 14) for row in ids],
            "length": [len(row) for row in ids],
        }
    )


DATA = SimpleNamespace(
    train=make_rows(43, 0),
    validation=make_rows(9, 1),
    test=make_rows(7, 2),
    label_names=["bad", "good"],
    summary={
        "source": "mine.csv",
        "tokenization": {"splits": {"train": {"rows_cut": 3}, "test": {"rows_cut": 0}}},
    },
)


def collate(rows: list[dict[str, Any]]) -> Batch:
    ids = [torch.tensor(row["input_ids"]) for row in rows]
    padded = nn.utils.rnn.pad_sequence(ids, batch_first=True)
    return {
        "input_ids": padded,
        "attention_mask": (padded != 0).long(),
        "labels": torch.tensor([row["label"] for row in rows]),
    }


def dry_run(folder: Path, **settings: Any) -> None:
    config = RunConfig(output_dir=str(folder / "runs"), dry_run=True, **settings)
    with pytest.raises(RecipeEnds):
        fit(
            start_run(Invocation(config, None), "x"), Net(), DATA, objective=Classification(),
            collate=collate, metric=ClassificationMetric(2),
        )  # fmt: skip
    assert not (folder / "runs").exists()


def facts(folder: Path, **settings: Any) -> dict[str, Any]:
    file = folder / "facts.json"
    dry_run(folder, dry_run_json=str(file), **settings)
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_settings_that_were_changed_come_first() -> None:
    config = RunConfig(train=TrainConfig(epochs=9), seed=1)
    described = describe_settings(config)
    assert list(described)[:2] == ["train.epochs", "seed"]
    assert described["train.epochs"] == {"value": 9, "default": 3, "changed": True}
    assert sum(setting["changed"] for setting in described.values()) == 2
    assert described["train.learning_rate"]["value"] == 2e-5


def test_data_in_numbers() -> None:
    found = describe_data(DATA)
    lengths = DATA.train["length"][:]
    good = sum(DATA.train["label"][:])
    assert found == {
        "source": "mine.csv",
        "rows": {"train": 43, "validation": 9, "test": 7},
        "labels_in_train": {"bad": 43 - good, "good": good},
        "tokens_in_train": {
            "mean": round(sum(lengths) / 43, 1),
            "95 %": round(float(np.percentile(lengths, 95)), 1),
            "max": max(lengths),
        },
        "rows_cut": {"train": 3, "test": 0},
    }


def test_steps_and_the_largest_micro_batch(tmp_path: Path) -> None:
    train = TrainConfig(batch_size=4, accumulation_steps=2, epochs=2, group_by_length=False)
    found = facts(tmp_path, train=train)
    steps = found["steps"]
    assert (steps["per_epoch"], steps["total"], steps["rows_per_step"]) == (6, 12, 8)
    # The rows of the first epoch in their order, four at a time; the last step has three.
    order = np.random.default_rng([42, 0]).permutation(43)
    lengths = np.array(DATA.train["length"][:])
    passes = [np.split(order[start : start + 8], 2) for start in range(0, 40, 8)]
    sizes = [len(rows) * lengths[rows].max() for step in passes for rows in step]
    largest = found["largest micro-batch"]
    assert largest["padded_tokens"] == max(sizes)
    assert f"input_ids [4, {max(sizes) // 4}]" in largest["tensors"]
    assert found["time"]["evaluations"] == 2


def test_memory_and_disk(tmp_path: Path) -> None:
    found = facts(tmp_path, train=TrainConfig(batch_size=4, keep_checkpoints=2, ema=0.9))
    rows, tokens = 4, found["largest micro-batch"]["padded_tokens"]
    trained = WIDTH * WIDTH + WIDTH + 2 * WIDTH + 2
    weights = trained + 30 * WIDTH
    held = found["memory"]
    assert held["weights_bytes"] == 4 * weights
    assert held["gradients_bytes"] == held["average_bytes"] == 4 * trained
    assert held["optimizer_bytes"] == 8 * trained
    # For the backward pass: the embedded tokens, those after ReLU, their mean; log-probabilities,
    # labels and the weight of the sum.
    least = 4 * (2 * tokens * WIDTH + rows * WIDTH + 2 * rows)
    assert least <= held["activations_saved_for_backward_bytes"] <= least + 16 * rows + 64
    assert held["activations_at_their_most_bytes"] >= least
    peak = held["activations_at_their_most_bytes"]
    before = held["total_bytes"] - 4 * 4 * trained - peak
    assert before == held["weights_bytes"] + held["libraries_and_data_bytes"]
    assert held["still_needed_bytes"] == 4 * 4 * trained + int(1.5 * peak) + 512 * 2**20
    assert held["total_at_worst_bytes"] == before + held["still_needed_bytes"]
    assert held["enough"] is True
    assert found["disk"]["checkpoint_bytes"] == 4 * (weights + 3 * trained)
    assert found["disk"]["needed_bytes"] == 4 * found["disk"]["checkpoint_bytes"]
    assert found["model"]["parameters_trained"] == trained


def test_too_little_memory_or_disk_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "available_memory", lambda device: 1000)
    monkeypatch.setattr(forecast, "free_space", lambda folder: 1000)
    found = facts(tmp_path, train=TrainConfig())
    assert found["memory"]["enough"] is False
    assert found["disk"]["enough"] is False


def test_time_follows_from_the_steps(tmp_path: Path) -> None:
    found = facts(tmp_path, train=TrainConfig(batch_size=8, evaluate_every=4, max_steps=10))
    seconds = found["time"]
    assert seconds["training_seconds"] == pytest.approx(10 * seconds["step_seconds"])
    assert seconds["evaluations"] == math.ceil(10 / 4)
    assert seconds["total_seconds"] == pytest.approx(
        seconds["training_seconds"] + 3 * seconds["evaluation_seconds"]
    )
    limited = facts(tmp_path, train=TrainConfig(batch_size=8, max_seconds=1e-6), run_id="b")["time"]
    assert limited["training_seconds"] == 1e-6
    assert limited["evaluations"] == 1


def test_json_alone_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dry_run(tmp_path, dry_run_json="-", seed=5)
    found = json.loads(capsys.readouterr().out)
    assert list(found) == [
        "recipe", "settings", "data", "model", "steps", "largest micro-batch", "memory", "disk",
        "time",
    ]  # fmt: skip
    assert found["settings"]["seed"]["value"] == 5


def test_the_table_has_it_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dry_run(tmp_path, seed=5)
    shown = capsys.readouterr().out
    for part in ("seed", "5  (default 42)", "bad ", "optimizer", "GiB", "rows per step"):
        assert part in shown


def test_a_dry_run_is_asked_for_by_its_json(tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    asked = parse_arguments(RunConfig, tmp_path / "x.py", ["--dry-run-json", str(file)])
    assert asked.config.dry_run
    with pytest.raises(UserError, match=r"--dry_run_json .*: expected a file in a folder"):
        parse_arguments(RunConfig, tmp_path / "x.py", ["--dry-run-json", str(file / "b")])
