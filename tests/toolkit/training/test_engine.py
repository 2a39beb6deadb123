"""The whole loop: exact resume, the best checkpoint, early stop, losses that are no numbers."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import datasets
import numpy as np
import pytest
import torch
from accelerate import Accelerator
from torch import nn

import toolkit.run
import toolkit.training.interruption
import toolkit.training.saving
from toolkit.arguments import load_config
from toolkit.config import Invocation, RunConfig, TrainConfig
from toolkit.errors import Interrupted, UserError
from toolkit.evaluation import ClassificationMetric
from toolkit.objectives import Batch, Classification, Objective
from toolkit.run import start_run
from toolkit.training.checkpoint import SaveError
from toolkit.training.engine import FitResult, fit
from toolkit.training.train_state import TrainState
from toolkit.training.training_steps import NotFiniteError, Training, train_step, training_steps

pytestmark = pytest.mark.usefixtures("fresh_accelerator")


class Bag(nn.Module):
    """Mean of token vectors, dropout, a linear layer: small, but with random masks to restore."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embed = nn.Embedding(30, 8)
        self.dropout = nn.Dropout(0.3)
        self.out = nn.Linear(8, 2)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        mask = attention_mask.unsqueeze(-1)
        pooled = (self.embed(input_ids) * mask).sum(1) / mask.sum(1)
        return SimpleNamespace(logits=self.out(self.dropout(pooled)))


def make_rows(count: int, seed: int) -> datasets.Dataset:
    generator = np.random.default_rng(seed)
    ids = [generator.integers(0, 30, generator.integers(1, 9)).tolist() for _ in range(count)]
    return datasets.Dataset.from_dict(
        {
            "input_ids": ids,
            "label": [int(sum(row) / len(row) > 14) for row in ids],
            "length": [len(row) for row in ids],
        }
    )


DATA = SimpleNamespace(train=make_rows(45, 0), validation=make_rows(13, 1))


def collate(rows: list[dict[str, Any]]) -> Batch:
    longest = max(len(row["input_ids"]) for row in rows)
    ids = [row["input_ids"] for row in rows]
    return {
        "input_ids": torch.tensor([i + [0] * (longest - len(i)) for i in ids]),
        "attention_mask": torch.tensor([[1] * len(i) + [0] * (longest - len(i)) for i in ids]),
        "labels": torch.tensor([row["label"] for row in rows]),
        "index": torch.tensor([row["index"] for row in rows]),
    }


class Killed(BaseException):
    """The process ends here, without any clearing up."""


class Spy(Classification):
    """Counts training passes; can be killed in one, or give a loss that is not a number."""

    def __init__(self, kill_at: int | None = None, nan_at: int | None = None) -> None:
        super().__init__()
        self.kill_at, self.nan_at, self.passes = kill_at, nan_at, 0
        self.rows: list[list[int]] = []

    def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        self.passes += 1
        if self.passes == self.kill_at:
            raise Killed
        self.rows.append(batch["index"].tolist())
        loss = super().loss(model, batch)
        return loss * float("nan") if self.passes == self.nan_at else loss


class Scripted:
    """A metric that says what the test wants, and keeps the weights of every evaluation."""

    def __init__(
        self, *values: float, higher_is_better: bool = True, model: nn.Module | None = None
    ) -> None:
        self.selection, self.higher_is_better = "score", higher_is_better
        self.values = iter(values)
        self.model, self.seen = model, []

    def __call__(self, outputs: dict[str, np.ndarray]) -> dict[str, float]:
        if self.model is not None:
            self.seen.append(weights(self.model))
        return {"score": next(self.values)}


def settings(**train: Any) -> TrainConfig:
    """Three passes per step, 45 rows: 8 steps an epoch, the last of 3 rows."""
    defaults: dict[str, Any] = {
        "epochs": 3, "batch_size": 2, "accumulation_steps": 3, "learning_rate": 0.05,
        "log_every": 1,
    }  # fmt: skip
    return TrainConfig(**{**defaults, **train})


@pytest.fixture
def train_bag(tmp_path: Path) -> Callable[..., FitResult]:
    """Start (or resume) a run under tmp_path/<name>."""

    def start(name: str, train: TrainConfig | None, *, resume: bool = False, **parts: Any) -> Any:
        from accelerate.state import AcceleratorState, GradientState

        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
        directory = tmp_path / "bag" / name
        if resume:
            invocation = Invocation(load_config(RunConfig, directory / "config.yaml"), directory)
        else:
            config = RunConfig(train=train, output_dir=str(tmp_path), run_id=name)
            invocation = Invocation(config, None)
        return fit(
            start_run(invocation, "bag"),
            parts.get("model") or Bag(),
            DATA,
            objective=parts.get("objective") or Spy(),
            collate=collate,
            metric=parts.get("metric") or ClassificationMetric(2),
        )

    return start


def weights(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def assert_same_weights(one: nn.Module, other: nn.Module) -> None:
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name


def log_of(directory: Path) -> list[dict[str, Any]]:
    """All that was logged, without the clock and the energy."""
    lines = map(json.loads, (directory / "metrics.jsonl").read_text().splitlines())
    return [{k: v for k, v in line.items() if k not in ("seconds", "joules")} for line in lines]


def checkpoints(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "checkpoints").iterdir())


# Resume

CASES = {
    "saved every 3 steps": settings(save_every=3),
    "saved every epoch": settings(),
    "saved every step": settings(save_every=1, keep_checkpoints=2),
    "evaluated every 5 steps, cosine": settings(evaluate_every=5, save_every=2, schedule="cosine"),
    "not grouped by length": settings(save_every=3, group_by_length=False),
}


@pytest.mark.parametrize("case", CASES)
def test_a_killed_run_resumes_to_the_same_bits(
    train_bag: Callable[..., FitResult], tmp_path: Path, case: str
) -> None:
    whole = train_bag("whole", CASES[case])
    assert whole.total_steps == 24
    # 24 steps of 3 passes (2 in an epoch's last step): somewhere in the second epoch, mid-step,
    # and once more after that.
    generator = random.Random(case)
    train_bag_until(train_bag, "killed", CASES[case], kill_at=generator.randint(24, 46))
    seen = len(log_of(tmp_path / "bag" / "killed"))
    assert 0 < seen < len(log_of(tmp_path / "bag" / "whole"))
    train_bag_until(train_bag, "killed", None, kill_at=generator.randint(2, 12), resume=True)
    random.seed(99)  # nothing of the new process's random state may count
    np.random.seed(99)
    resumed = train_bag("killed", None, resume=True)
    assert_same_weights(whole.model, resumed.model)
    assert log_of(tmp_path / "bag" / "killed") == log_of(tmp_path / "bag" / "whole")
    resumed_state, state = (replace(r.state, seconds=0, joules=None) for r in (resumed, whole))
    assert resumed_state == state


def train_bag_until(
    start: Callable[..., Any], name: str, train: TrainConfig | None, kill_at: int, **how: Any
) -> None:
    with pytest.raises(Killed):
        start(name, train, objective=Spy(kill_at=kill_at), **how)


def test_dropout_matters_to_the_resume_test(train_bag: Callable[..., FitResult]) -> None:
    """With other masks the weights differ, so equal bits mean restored random states."""
    plain = train_bag("plain", settings(epochs=1))
    model = Bag()
    model.dropout.p = 0.0
    other = train_bag("other", settings(epochs=1), model=model)
    assert not torch.equal(plain.model.out.weight, other.model.out.weight)


def test_killed_before_the_first_checkpoint_starts_over(
    train_bag: Callable[..., FitResult], tmp_path: Path
) -> None:
    whole = train_bag("whole", settings(epochs=1))
    train_bag_until(train_bag, "killed", settings(epochs=1), kill_at=9)
    resumed = train_bag("killed", None, resume=True)
    assert_same_weights(whole.model, resumed.model)
    assert log_of(tmp_path / "bag" / "killed") == log_of(tmp_path / "bag" / "whole")


def test_a_log_line_cut_short_by_the_kill_is_dropped(
    train_bag: Callable[..., FitResult], tmp_path: Path
) -> None:
    train_bag("whole", settings(save_every=3))
    train_bag_until(train_bag, "killed", settings(save_every=3), kill_at=30)
    with (tmp_path / "bag" / "killed" / "metrics.jsonl").open("a") as stream:
        stream.write('{"step": 3, "lo')
    train_bag("killed", None, resume=True)
    assert log_of(tmp_path / "bag" / "killed") == log_of(tmp_path / "bag" / "whole")


def test_a_finished_training_resumes_to_its_best_weights(
    train_bag: Callable[..., FitResult], tmp_path: Path
) -> None:
    """Killed after the last step, before the summary: nothing is trained again."""
    scores = (0.5, 0.9, 0.7)
    whole = train_bag("run", settings(), metric=Scripted(*scores))
    objective = Spy()
    resumed = train_bag("run", None, resume=True, objective=objective, metric=Scripted())
    assert objective.passes == 0
    assert_same_weights(whole.model, resumed.model)


def test_with_other_processes_a_resume_is_refused(
    train_bag: Callable[..., FitResult], tmp_path: Path
) -> None:
    train_bag_until(train_bag, "run", settings(save_every=3), kill_at=30)
    for state in (tmp_path / "bag" / "run" / "checkpoints").glob("*/trainer_state.json"):
        text = state.read_text().replace('"processes": 1', '"processes": 2')
        state.write_text(text)
        manifest = json.loads(state.with_name("manifest.json").read_text())
        manifest["trainer_state.json"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        state.with_name("manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match="started with 2 processes, now there are 1"):
        train_bag("run", None, resume=True)


# Damaged checkpoints


def truncate(folder: Path) -> str:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return "model.safetensors has"


def change_a_byte(folder: Path) -> str:
    file = folder / "optimizer.bin"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    return "optimizer.bin was changed"


def remove_the_manifest(folder: Path) -> str:
    (folder / "manifest.json").unlink()
    return "manifest.json is missing"


def remove_a_file(folder: Path) -> str:
    (folder / "random_state_0.pt").unlink()
    return "random_state_0.pt is missing"


def empty_it(folder: Path) -> str:
    shutil.rmtree(folder)
    folder.mkdir()
    return "manifest.json is missing"


def cut_the_manifest(folder: Path) -> str:
    file = folder / "manifest.json"
    file.write_text(file.read_text()[:40])
    return "manifest.json is missing or unreadable"


def test_a_damaged_newest_checkpoint_is_skipped_with_the_reason(
    train_bag: Callable[..., FitResult], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is step-10; the one before is step-9, which comes after it in the alphabet."""
    train = settings(save_every=1, keep_checkpoints=3, max_steps=12)
    whole = train_bag("whole", train)
    train_bag_until(train_bag, "killed", train, kill_at=23 + 7)  # in step 11
    runs = tmp_path / "bag"
    assert {"step-8", "step-9", "step-10"} <= set(checkpoints(runs / "killed"))
    for damage in (
        truncate, change_a_byte, remove_the_manifest, remove_a_file, empty_it, cut_the_manifest
    ):  # fmt: skip
        name = damage.__name__
        shutil.copytree(runs / "killed", runs / name)
        reason = damage(runs / name / "checkpoints" / "step-10")
        (runs / name / "checkpoints" / ".step-11.partial").mkdir()  # killed while it was written
        capsys.readouterr()
        resumed = train_bag(name, None, resume=True)
        said = capsys.readouterr().err
        assert f"skipping checkpoint step-10: {reason}" in said
        assert "after step 9" in said
        assert_same_weights(whole.model, resumed.model)
        assert log_of(runs / name) == log_of(runs / "whole")


def test_a_lost_best_checkpoint_does_not_end_the_resumed_run(
    train_bag: Callable[..., FitResult], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = settings(save_every=2)
    with pytest.raises(Killed):
        train_bag("run", train, objective=Spy(kill_at=58), metric=Scripted(0.9, 0.8))
    folder = tmp_path / "bag" / "run" / "checkpoints"
    assert "step-8" in {path.name for path in folder.iterdir()}  # the best one
    (folder / "step-8" / "model.safetensors").unlink()
    result = train_bag("run", None, resume=True, metric=Scripted(0.7, 0.6))
    said = capsys.readouterr().err
    assert "the best checkpoint so far, step-8, is lost (model.safetensors is missing)" in said
    assert result.state.best_step == 24


# Best checkpoint, rotation, early stop


@pytest.mark.parametrize(
    ("scores", "higher", "best"),
    [
        ((0.5, 0.9, 0.7), True, 2),
        ((0.5, 0.9, 0.7), False, 1),
        ((0.5, 0.5, 0.5), True, 1),  # a tie keeps the earlier one
        ((0.1, 0.2, 0.3), True, 3),
    ],
)
def test_the_best_weights_are_returned(
    train_bag: Callable[..., FitResult], scores: tuple[float, ...], higher: bool, best: int
) -> None:
    model = Bag()
    metric = Scripted(*scores, higher_is_better=higher, model=model)
    result = train_bag("run", settings(), metric=metric, model=model)
    assert result.state.best_step == 8 * best
    assert result.state.best_metrics == {"score": scores[best - 1]}
    assert result.selection == f"{'highest' if higher else 'lowest'} validation score"
    for name, value in result.model.state_dict().items():
        assert torch.equal(value, metric.seen[best - 1][name])
        assert not torch.equal(value, metric.seen[best % 3][name])


def test_rotation_keeps_the_newest_and_the_best(
    train_bag: Callable[..., FitResult], tmp_path: Path
) -> None:
    for keep in (1, 2):
        name = f"keep{keep}"
        train = settings(evaluate_every=4, save_every=2, keep_checkpoints=keep)
        train_bag(name, train, metric=Scripted(0.9, 0.1, 0.2, 0.3, 0.1, 0.1))
        newest = ["step-24"] if keep == 1 else ["step-22", "step-24"]
        assert checkpoints(tmp_path / "bag" / name) == sorted([*newest, "step-4"])


def test_a_new_best_is_saved_between_two_saves(
    train_bag: Callable[..., FitResult], tmp_path: Path
) -> None:
    train = settings(evaluate_every=5, save_every=24)
    result = train_bag("run", train, metric=Scripted(0.1, 0.9, 0.2, 0.3, 0.1))
    assert result.state.best_step == 10
    assert checkpoints(tmp_path / "bag" / "run") == ["step-10", "step-24"]


def test_early_stop_after_so_many_evaluations_without_a_better_one(
    train_bag: Callable[..., FitResult],
) -> None:
    train = settings(evaluate_every=2, patience=3)
    scores = (0.5, 0.6, 0.6, 0.55, 0.61, 0.1, 0.1, 0.1, 0.9)
    result = train_bag("run", train, metric=Scripted(*scores))
    assert result.state.stopped_early
    assert result.state.step == 16  # 0.61 at step 10, then three worse ones
    assert result.state.best_step == 10
    assert result.state.best_metrics == {"score": 0.61}


def test_early_stop_counts_on_after_a_resume(train_bag: Callable[..., FitResult]) -> None:
    train = settings(evaluate_every=2, patience=3)
    with pytest.raises(Killed):  # in step 9 (passes 24 to 26), after four evaluations
        train_bag("run", train, objective=Spy(kill_at=25), metric=Scripted(0.5, 0.9, 0.1, 0.2))
    result = train_bag("run", None, resume=True, metric=Scripted(0.3, 0.99))
    assert result.state.step == 10
    assert result.state.stopped_early


def test_max_steps_ends_in_the_middle_of_an_epoch_with_the_rate_laid_out_for_it(
    train_bag: Callable[..., FitResult], tmp_path: Path
) -> None:
    result = train_bag("run", settings(max_steps=11, warmup_ratio=0.0))
    assert result.state.step == result.total_steps == 11
    rates = [e["learning_rate"] for e in log_of(tmp_path / "bag" / "run") if "learning_rate" in e]
    assert rates == pytest.approx([0.05 * (1 - i / 11) for i in range(11)])
    evaluated = [e["step"] for e in log_of(tmp_path / "bag" / "run") if "validation" in e]
    assert evaluated == [8, 11]


def test_more_steps_than_epochs_go_on_with_new_epochs(
    train_bag: Callable[..., FitResult],
) -> None:
    objective = Spy()
    result = train_bag("run", settings(epochs=1, max_steps=20), objective=objective)
    assert result.state.step == 20
    rows = [row for chunk in objective.rows for row in chunk]
    assert sorted(rows[:45]) == sorted(rows[45:90]) == list(range(45))
    assert rows[:45] != rows[45:90]


def test_counts_of_examples_and_tokens(train_bag: Callable[..., FitResult]) -> None:
    result = train_bag("run", settings(epochs=2))
    assert result.state.examples == 90
    assert result.state.tokens == 2 * sum(DATA.train["length"][:])
    assert result.state.epoch == 1
    assert result.state.seconds > 0


def test_frozen_parameters_do_not_move(train_bag: Callable[..., FitResult]) -> None:
    model = Bag()
    model.embed.requires_grad_(False)
    before = weights(model)
    after = train_bag("run", settings(weight_decay=0.5), model=model).model.state_dict()
    assert torch.equal(before["embed.weight"], after["embed.weight"])
    assert not torch.equal(before["out.weight"], after["out.weight"])


def test_the_same_seed_gives_the_same_run_and_another_does_not(
    train_bag: Callable[..., FitResult], tmp_path: Path
) -> None:
    one, two = train_bag("one", settings(epochs=1)), train_bag("two", settings(epochs=1))
    assert_same_weights(one.model, two.model)
    assert log_of(tmp_path / "bag" / "one") == log_of(tmp_path / "bag" / "two")


# Ctrl-C


class Interrupting(Spy):
    """Sends a signal to this process in one of its passes."""

    def __init__(self, at: int, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.at, self.number = at, number

    def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        if self.passes + 1 == self.at:
            os.kill(os.getpid(), self.number)
        return super().loss(model, batch)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_finishes_the_step_and_saves(
    train_bag: Callable[..., FitResult], tmp_path: Path, number: int
) -> None:
    """In a step after which nothing is due: the checkpoint is made for the interruption alone."""
    whole = train_bag("whole", settings())
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(Interrupted) as caught:
            train_bag("run", settings(), objective=Interrupting(3 * 10 + 2, number))
    finally:
        signal.signal(signal.SIGINT, before)
    run = tmp_path / "bag" / "run"
    assert caught.value.status == 128 + number
    assert str(caught.value).startswith("interrupted after step 11, which is saved. Go on with: ")
    assert str(caught.value).endswith(f"--resume {run}")
    assert log_of(run)[-1]["step"] == 11
    assert "step-11" in checkpoints(run)
    resumed = train_bag("run", None, resume=True)
    assert_same_weights(resumed.model, whole.model)
    assert log_of(run) == log_of(tmp_path / "bag" / "whole")


def test_interrupted_in_the_last_step_it_ends_without_the_test(
    train_bag: Callable[..., FitResult], tmp_path: Path
) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(Interrupted, match="after step 2,"):
            train_bag("run", settings(max_steps=2), objective=Interrupting(6))
    finally:
        signal.signal(signal.SIGINT, before)
    assert checkpoints(tmp_path / "bag" / "run") == ["step-2"]


def test_a_second_ctrl_c_ends_it_within_the_step(
    train_bag: Callable[..., FitResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolkit.training.interruption, "SAME_SIGNAL", 0.0)

    class Twice(Interrupting):
        def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
            if self.passes + 1 == self.at:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
            return super().loss(model, batch)

    objective = Twice(3 * 10 + 2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            train_bag("run", settings(), objective=objective)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not isinstance(caught.value, Interrupted)
    assert objective.passes == 3 * 10 + 1
    assert checkpoints(tmp_path / "bag" / "run") == ["step-8"]


# A full disk


def test_it_waits_for_room_and_goes_on(
    train_bag: Callable[..., FitResult],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = train_bag("whole", settings())
    free = iter([10**9, *[5] * 6, *[10**9] * 9])  # full when step 16 is to be saved
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=next(free)))
    monkeypatch.setattr(toolkit.training.saving, "RETRY", 0.01)
    result = train_bag("run", settings())
    assert_same_weights(result.model, whole.model)
    said = capsys.readouterr().err
    assert said.count("checkpoint step-16 cannot be saved") == 1
    assert "Training waits up to 600 seconds" in said


def test_it_gives_up_waiting_and_the_checkpoint_before_is_intact(
    train_bag: Callable[..., FitResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train_bag("whole", settings())
    free = iter([10**9, *[5] * 1000])
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=next(free)))
        full.setattr(toolkit.training.saving, "RETRY", 0.01)
        with pytest.raises(SaveError) as caught:
            train_bag("run", settings(wait_for_space=0.05))
    assert "checkpoint step-16 cannot be saved" in str(caught.value)
    assert "Checkpoint step-8 is intact: make room and go on" in str(caught.value)
    assert checkpoints(tmp_path / "bag" / "run") == ["step-8"]
    assert_same_weights(train_bag("run", None, resume=True).model, whole.model)


def test_a_disk_without_room_for_a_line_of_the_log_ends_nothing(
    train_bag: Callable[..., FitResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be written in the run directory from step 5 to step 12, as a full disk has it."""
    whole = train_bag("whole", settings(save_every=4))
    run, other = tmp_path / "bag" / "run", tmp_path / "other"
    append, written = toolkit.run.append_whole, []

    def full(path: Path, text: str) -> None:
        written.append(text)
        if 5 <= len(written) <= 12:
            raise OSError(28, "No space left on device")
        append(path, text)

    def usage(folder: Path) -> SimpleNamespace:
        inside = folder.is_relative_to(run)
        return SimpleNamespace(free=0 if inside and 5 <= len(written) <= 12 else 10**9)

    monkeypatch.setattr(toolkit.run, "append_whole", full)
    monkeypatch.setattr(shutil, "disk_usage", usage)
    with pytest.raises(Killed):
        train_bag("run", settings(save_every=4, fallback_dir=str(other)), objective=Spy(3 * 9 + 1))
    assert [event["step"] for event in log_of(run) if "loss" in event] == [1, 2, 3, 4]
    [saved] = other.glob("bag/run-*/checkpoints/step-8")
    assert json.loads((saved / "trainer_state.json").read_text())["unwritten"]
    monkeypatch.undo()
    resumed = train_bag("run", None, resume=True)
    assert_same_weights(resumed.model, whole.model)
    assert log_of(run) == log_of(tmp_path / "bag" / "whole")


def test_another_runs_checkpoints_on_the_other_disk_are_not_this_runs(
    train_bag: Callable[..., FitResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = settings(save_every=4, fallback_dir=str(tmp_path / "other"))
    run = tmp_path / "bag" / "run"
    with monkeypatch.context() as full:
        full.setattr(
            shutil, "disk_usage",
            lambda folder: SimpleNamespace(free=0 if folder.is_relative_to(run) else 10**9),
        )  # fmt: skip
        with pytest.raises(Killed):
            train_bag("run", train, objective=Spy(3 * 9 + 1))
        shutil.rmtree(run)
        with pytest.raises(Killed):
            train_bag("run", train, objective=Spy(3 * 2 + 1))
    assert train_bag("run", None, resume=True).state.step == 24
    assert [event["step"] for event in log_of(run) if "loss" in event] == list(range(1, 25))


def test_ctrl_c_ends_the_wait(
    train_bag: Callable[..., FitResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=0))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    started = time.monotonic()
    try:
        timer.start()
        with pytest.raises(Interrupted, match="There is no earlier checkpoint") as caught:
            train_bag("run", settings(save_every=1))
        assert caught.value.status == 130
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started < 60  # not 600


# Losses that are not numbers


def test_a_nan_stops_the_run_and_harms_nothing(
    train_bag: Callable[..., FitResult], tmp_path: Path
) -> None:
    model, objective = Bag(), Spy(nan_at=3 * 6 + 2)  # the second pass of step 7
    with pytest.raises(UserError) as caught:
        train_bag("run", settings(save_every=6, epochs=1), model=model, objective=objective)
    message = str(caught.value)
    assert "\n" not in message
    assert "the loss became nan in step 7" in message
    rate = 0.05 * (1 - (6 - 1) / (8 - 1))  # one warm-up step of eight
    assert f"learning rate {rate:.3g}" in message
    rows = [row for chunk in objective.rows[-3:] for row in chunk]
    assert len(rows) == 6
    named = message.split("training rows ")[1].split(")")[0].split(", ")
    assert sorted(map(int, named)) == sorted(rows)
    from safetensors.torch import load_file

    before = load_file(tmp_path / "bag" / "run" / "checkpoints" / "step-6" / "model.safetensors")
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_an_infinite_gradient_of_a_finite_loss_stops_the_run_too(
    train_bag: Callable[..., FitResult], tmp_path: Path
) -> None:
    class Explosive(Spy):
        def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
            loss = super().loss(model, batch)
            if self.passes == 8:
                weight = next(iter(model.parameters()))
                loss = loss + torch.sqrt(weight.sum() * 0)  # 0, with an infinite slope
            return loss

    model = Bag()
    with pytest.raises(UserError, match=r"the gradient norm became (nan|inf) in step 3"):
        train_bag("run", settings(epochs=1, save_every=1), model=model, objective=Explosive())
    assert all(torch.isfinite(value).all() for value in model.state_dict().values())


def test_a_step_with_a_nan_can_be_left_out(
    train_bag: Callable[..., FitResult], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = settings(epochs=1, not_finite="skip", log_every=100)
    model, objective = Bag(), Spy(nan_at=3 * 2 + 2)  # the second pass of step 3
    result = train_bag("run", train, model=model, objective=objective)
    assert result.state.skipped == 1
    assert (result.state.step, result.state.updates) == (8, 7)
    events = [event for event in log_of(tmp_path / "bag" / "run") if "validation" not in event]
    assert [event["step"] for event in events] == [1, 3, 8]  # it is logged though not due
    assert "the loss became nan in step 3" in events[1]["skipped"]
    assert "loss" not in events[1]
    assert "warning: step 3 was left out" in capsys.readouterr().err
    assert all(torch.isfinite(value).all() for value in model.state_dict().values())


def test_ten_such_steps_on_end_end_the_run(train_bag: Callable[..., FitResult]) -> None:
    class Lost(Spy):
        def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
            return super().loss(model, batch) * (float("nan") if self.passes > 6 else 1)

    with pytest.raises(NotFiniteError, match="in step 12, for the 10th step on end"):
        train_bag("run", settings(not_finite="skip"), objective=Lost())


def test_what_a_batch_norm_measured_of_it_is_forgotten() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    rows = datasets.Dataset.from_dict(
        {"x": [[1.0, 2.0], [float("inf"), 1.0], [0.0, 3.0], [2.0, 2.0]], "id": list("abcd")}
    )

    class Task:
        def count(self, batch: Batch) -> list[int]:
            return [len(batch["input_ids"])]

        def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
            return model(batch["input_ids"]).square().sum().view(1)

    def collate(rows: list[dict[str, Any]]) -> Batch:
        return {"input_ids": torch.tensor([row["x"] for row in rows])}

    train = TrainConfig(epochs=1, batch_size=4, not_finite="skip", warmup_ratio=0.0)
    config = SimpleNamespace(train=train, seed=0)
    run: Any = SimpleNamespace(config=config, accelerator=Accelerator())
    unused: Any = None
    training = Training(
        run=run, model=model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data=SimpleNamespace(train=rows, validation=rows), objective=cast(Objective, Task()),
        collate=collate, collate_validation=collate, metric=unused, steps_per_epoch=1,
        total_steps=1, lengths=None, state=TrainState(),
    )  # fmt: skip
    before = weights(model)
    report = train_step(training, next(training_steps(training)))
    assert "(id b)" in report["skipped"]
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert all(parameter.grad is None for parameter in model.parameters())
