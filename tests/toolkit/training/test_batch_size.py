"""Micro-batches that fit: which are chosen, and that nothing else changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from toolkit.arguments import load_config
from toolkit.config import Invocation, RunConfig, TrainConfig
from toolkit.errors import UserError
from toolkit.evaluation import ClassificationMetric
from toolkit.objectives import Batch, Classification
from toolkit.run import start_run
from toolkit.training import batch_size, memory
from toolkit.training.batch_size import possible_divisions
from toolkit.training.engine import FitResult, fit

pytestmark = pytest.mark.usefixtures("fresh_accelerator")

MIB = 2**20


def make_rows(count: int, seed: int) -> datasets.Dataset:
    generator = np.random.default_rng(seed)
    ids = [generator.integers(1, 40, generator.integers(2, 33)).tolist() for _ in range(count)]
    labels = [int(sum(row) / len(row) > 20) for row in ids]
    lengths = [len(row) for row in ids]
    return datasets.Dataset.from_dict({"input_ids": ids, "label": labels, "length": lengths})


DATA = SimpleNamespace(train=make_rows(60, 0), validation=make_rows(6, 1))


def collate(rows: list[dict[str, Any]]) -> Batch:
    ids = [torch.tensor(row["input_ids"]) for row in rows]
    padded = nn.utils.rnn.pad_sequence(ids, batch_first=True)
    return {
        "input_ids": padded,
        "attention_mask": (padded != 0).long(),
        "labels": torch.tensor([row["label"] for row in rows]),
    }


class Limited(Classification):
    """Has memory for so many tokens a pass; remembers the rows of every pass."""

    def __init__(self, tokens: int, error: type[RuntimeError] = torch.OutOfMemoryError) -> None:
        super().__init__()
        self.tokens, self.error = tokens, error
        self.seen: list[int] = []

    def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        self.seen.append(len(batch["labels"]))
        if batch["input_ids"].numel() > self.tokens:
            raise self.error("CUDA out of memory. Tried to allocate 20.00 GiB.")
        return super().loss(model, batch)


@pytest.fixture
def train_bert(tmp_path: Path) -> Callable[..., FitResult]:
    """`train_bert(name, objective, resume=False, **train)`."""

    def start(
        name: str, objective: Classification, resume: bool = False, **train: Any
    ) -> FitResult:
        directory = tmp_path / "x" / name
        if resume:
            invocation = Invocation(load_config(RunConfig, directory / "config.yaml"), directory)
        else:
            defaults: dict[str, Any] = {"max_steps": 3, "learning_rate": 0.01, "log_every": 1}
            settings = TrainConfig(**defaults | {"optimizer": "sgd"} | train)
            config = RunConfig(train=settings, output_dir=str(tmp_path), run_id=name)
            invocation = Invocation(config, None)
        torch.manual_seed(1)
        model = BertForSequenceClassification(
            BertConfig(
                num_hidden_layers=2, hidden_size=32, num_attention_heads=2, intermediate_size=64,
                initializer_range=0.2, vocab_size=40, hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
            )
        )  # fmt: skip
        return fit(
            start_run(invocation, "x"), model, DATA, objective=objective, collate=collate,
            metric=ClassificationMetric(2),
        )  # fmt: skip

    return start


def losses(directory: Path) -> list[float]:
    lines = map(json.loads, (directory / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if "loss" in line]


def recorded(directory: Path) -> dict[str, Any]:
    train: dict[str, Any] = yaml.safe_load((directory / "config.yaml").read_text())["train"]
    return train


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, RuntimeError])
def test_what_fits_is_found_by_trying_and_trains_the_same(
    train_bert: Callable[..., FitResult],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: type[RuntimeError],
) -> None:
    monkeypatch.setattr(batch_size._Work, "fits_by_measure", batch_size._Work.fits_in_fact)
    plain = train_bert("plain", Classification(), batch_size=6, accumulation_steps=2)
    assert "fit:" not in capsys.readouterr().err
    objective = Limited(150, error)
    longest = sorted(DATA.train["length"][:])[-1]
    assert 4 * longest <= 150 < 6 * longest
    found = train_bert("found", objective, batch_size=6, accumulation_steps=2, auto_batch_size=True)
    assert objective.seen[:4] == [12, 6, 4, 4]  # tried 12, 6 and 4 rows; then the first pass
    said = capsys.readouterr().err
    assert "--train.batch_size 4 --train.accumulation_steps 3" in said
    train = recorded(tmp_path / "x/found")
    assert (train["batch_size"], train["accumulation_steps"]) == (4, 3)
    np.testing.assert_allclose(
        losses(tmp_path / "x/found"), losses(tmp_path / "x/plain"), rtol=1e-5
    )
    for name, value in plain.model.state_dict().items():
        torch.testing.assert_close(found.model.state_dict()[name], value, atol=1e-6, rtol=1e-5)


def test_a_resumed_run_keeps_what_was_chosen(
    train_bert: Callable[..., FitResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_size._Work, "fits_by_measure", batch_size._Work.fits_in_fact)
    chosen = {"batch_size": 12, "auto_batch_size": True, "save_every": 1}
    whole = train_bert("whole", Limited(70), **chosen)
    assert recorded(tmp_path / "x/whole")["batch_size"] == 2

    class Killed(BaseException):
        pass

    class Dies(Limited):
        def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
            if len(self.seen) == 5 + 8:  # five tried, then six passes a step: in the second
                raise Killed
            return super().loss(model, batch)

    with pytest.raises(Killed):
        train_bert("killed", Dies(70), **chosen)
    objective = Limited(10**6)  # now there is room for all
    resumed = train_bert("killed", objective, resume=True)
    assert objective.seen[0] == 2
    for name, value in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], value)


def test_the_search_changes_neither_weights_nor_random_numbers(tmp_path: Path) -> None:
    """Batch norms measure, and dropout draws."""
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.norm = nn.Embedding(40, 8), nn.BatchNorm1d(8)
            self.dropout, self.out = nn.Dropout(0.5), nn.Linear(8, 2)

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
            pooled = self.norm(self.embed(input_ids).mean(1))
            return SimpleNamespace(logits=self.out(self.dropout(pooled)))

    model = Net().eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    config = RunConfig(train=TrainConfig(auto_batch_size=True), output_dir=str(tmp_path))
    run = start_run(Invocation(config, None), "x")
    random = torch.get_rng_state()
    batch_size.choose_batch_size(run, model, DATA, Classification(), collate)
    assert torch.equal(torch.get_rng_state(), random)
    assert not model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_on_a_cpu_what_fits_is_measured(
    train_bert: Callable[..., FitResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the memory for activations allows twice the rows; never more rows than fit."""
    chosen, needed = {}, {}
    work = batch_size._Work

    class Watched(work):  # type: ignore[misc, valid-type]
        def fits_by_measure(self, division: batch_size.Division) -> bool:
            rows = len(division.rows)
            needed[rows] = self.memory.added_by_training + 1.5 * self._measure(division.rows).peak
            return super().fits_by_measure(division)

    monkeypatch.setattr(batch_size, "_Work", Watched)
    monkeypatch.setattr(memory, "ALLOCATOR_ROOM", 0)
    for free in (10**9, 3 * MIB, 2 * MIB, MIB):
        monkeypatch.setattr(memory, "available_memory", lambda device, free=free: free)
        train_bert(f"{free}", Classification(), batch_size=32, auto_batch_size=True, max_steps=1)
        train = recorded(tmp_path / "x" / f"{free}")
        assert train["batch_size"] * train["accumulation_steps"] == 32
        chosen[free] = train["batch_size"]
        assert needed[train["batch_size"]] <= 0.9 * free * 1.05
        if train["batch_size"] < 32:
            assert needed[2 * train["batch_size"]] > 0.9 * free * 0.95
    assert chosen[10**9] == 32
    assert 32 > chosen[3 * MIB] >= chosen[2 * MIB] >= chosen[MIB] >= 1
    assert chosen[3 * MIB] > chosen[MIB]


def test_nothing_fits(
    train_bert: Callable[..., FitResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda device: 1000)
    with pytest.raises(UserError) as error:
        train_bert("none", Classification(), auto_batch_size=True)
    assert "not even 1 row fits" in str(error.value)
    assert "needed of 0.0 MiB" in str(error.value)
    assert "--train.gradient_checkpointing" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_batches_by_tokens_are_divided_into_more_passes(
    train_bert: Callable[..., FitResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_size._Work, "fits_by_measure", batch_size._Work.fits_in_fact)
    train_bert("plain", Classification(), batch_tokens=200)
    train_bert("found", Limited(90), batch_tokens=200, auto_batch_size=True)
    assert recorded(tmp_path / "x/found")["accumulation_steps"] == 4
    np.testing.assert_allclose(
        losses(tmp_path / "x/found"), losses(tmp_path / "x/plain"), rtol=1e-5
    )


@given(size=st.integers(1, 40), accumulation=st.integers(1, 6), rows=st.integers(1, 60))
def test_every_division_has_the_same_global_batch(size: int, accumulation: int, rows: int) -> None:
    train = TrainConfig(batch_size=size, accumulation_steps=accumulation)
    run: Any = SimpleNamespace(
        config=RunConfig(train=train), accelerator=SimpleNamespace(num_processes=1)
    )
    data = DATA.train.select(range(rows))
    found = list(possible_divisions(run, data))
    assert all(d.batch_size * d.accumulation_steps == size * accumulation for d in found)
    sizes = [d.batch_size for d in found]
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (size * accumulation, 1)
    lengths = data["length"][:]
    longest = sorted(lengths, reverse=True)
    for division in found:
        assert [lengths[i] for i in division.rows] == longest[: division.batch_size]


def test_running_out_of_memory_while_training_says_what_to_do(
    train_bert: Callable[..., FitResult], tmp_path: Path
) -> None:
    with pytest.raises(UserError) as error:
        train_bert("a", Limited(100), batch_size=8, accumulation_steps=2)
    said = str(error.value)
    assert "out of memory in step 1" in said
    assert " has 8 rows, padded to " in said
    assert "Tried to allocate 20.00 GiB" in said
    assert "--train.auto_batch_size" in said
    assert "--train.batch_size 4 --train.accumulation_steps 4 (the same global batch)" in said
    assert "--train.gradient_checkpointing" in said
    assert "--train.mixed_precision bf16" in said


def test_other_errors_of_a_step_are_left_alone(train_bert: Callable[..., FitResult]) -> None:
    class Broken(Classification):
        def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        train_bert("a", Broken())
