"""What a run records of its cost: exact where it can be, None where it is not known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import pytest
import torch
from torch import nn

import toolkit.cost
import toolkit.training.counted_step
import toolkit.training.engine
import toolkit.training.training_steps
from toolkit.arguments import load_config
from toolkit.clock import Clock
from toolkit.compute import FlopCounter
from toolkit.config import Invocation, RunConfig, TrainConfig
from toolkit.cost import cost_section, describe_cost, padding_policy
from toolkit.evaluation import ClassificationMetric
from toolkit.objectives import Batch, Classification
from toolkit.run import start_run
from toolkit.training.counted_step import is_counted
from toolkit.training.engine import FitResult, fit
from toolkit.training.train_state import TrainState

pytestmark = pytest.mark.usefixtures("fresh_accelerator")


class Reader(nn.Module):
    """A linear layer at every position, padding too; with dropout and a batch norm to upset."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embed = nn.Embedding(30, 6)
        self.norm = nn.BatchNorm1d(6)
        self.dropout = nn.Dropout(0.3)
        self.out = nn.Linear(6, 2)

    def forward(self, input_ids: torch.Tensor) -> SimpleNamespace:
        vectors = self.norm(self.embed(input_ids).transpose(1, 2)).transpose(1, 2)
        return SimpleNamespace(logits=self.out(self.dropout(vectors)).mean(1))


PER_TOKEN = 3 * 2 * 6 * 2  # the layer, its inputs' gradient and its weights'
ROWS = datasets.Dataset.from_dict(
    {
        "input_ids": [
            [(7 * row + place) % 30 for place in range(row % 9 + 2)] for row in range(23)
        ],
        "label": [row % 2 for row in range(23)],
        "length": [row % 9 + 2 for row in range(23)],
    }
)
DATA = SimpleNamespace(train=ROWS, validation=ROWS.select(range(5)))


def collate(rows: list[dict[str, Any]]) -> Batch:
    longest = max(len(row["input_ids"]) for row in rows)
    ids = [row["input_ids"] + [0] * (longest - len(row["input_ids"])) for row in rows]
    return {
        "input_ids": torch.tensor(ids), "labels": torch.tensor([row["label"] for row in rows])
    }  # fmt: skip


class Spy(Classification):
    """Remembers the padded tokens of every pass; can be stopped in one."""

    def __init__(self, stop_at: int | None = None) -> None:
        super().__init__()
        self.padded: list[int] = []
        self.stop_at = stop_at

    def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        self.padded.append(batch["input_ids"].numel())
        if len(self.padded) == self.stop_at:
            raise KeyboardInterrupt
        return super().loss(model, batch)


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., FitResult]:
    """Two passes a step, 23 rows of 2 a pass: 6 steps an epoch, 18 in all."""

    def start(
        name: str = "run", objective: Spy | None = None, resume: bool = False, **settings: Any
    ) -> FitResult:
        from accelerate.state import AcceleratorState, GradientState

        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
        directory = tmp_path / "reader" / name
        if resume:
            invocation = Invocation(load_config(RunConfig, directory / "config.yaml"), directory)
        else:
            options: dict[str, Any] = {
                "epochs": 3, "batch_size": 2, "accumulation_steps": 2, "learning_rate": 0.05,
                "log_every": 1,
            }  # fmt: skip
            options |= settings
            config = RunConfig(
                train=TrainConfig(**options), output_dir=str(tmp_path), run_id=name
            )  # fmt: skip
            invocation = Invocation(config, None)
        return fit(
            start_run(invocation, "reader"), Reader(), DATA, objective=objective or Spy(),
            collate=collate, metric=ClassificationMetric(2),
        )  # fmt: skip

    return start


def lines_of(tmp_path: Path, name: str = "run") -> list[dict[str, Any]]:
    lines = (tmp_path / "reader" / name / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


# Operations and tokens


@pytest.mark.parametrize("grouped", [True, False])
def test_padded_tokens_and_operations_are_those_of_all_steps(
    train: Callable[..., FitResult], grouped: bool
) -> None:
    spy = Spy()
    state = train(objective=spy, group_by_length=grouped).state
    assert state.step == 18
    assert state.padded_tokens == sum(spy.padded)
    assert state.tokens == 3 * sum(ROWS["length"][:])
    assert state.tokens < state.padded_tokens
    assert state.flops == PER_TOKEN * sum(spy.padded)
    # Steps 1, 2, 4, 8 and 16 were counted; each has two passes.
    counted = sum(spy.padded[2 * step - 2] + spy.padded[2 * step - 1] for step in (1, 2, 4, 8, 16))
    assert (state.positions_counted, state.flops_counted) == (counted, PER_TOKEN * counted)


def test_counting_changes_no_bit_of_a_run(
    train: Callable[..., FitResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = train("counted")
    monkeypatch.setattr(toolkit.training.training_steps, "is_counted", lambda state, images: False)
    plain = train("plain")
    assert (counted.state.flops is None, plain.state.flops is None) == (False, True)
    assert_same_training(counted, plain, tmp_path)


def assert_same_training(one: FitResult, other: FitResult, tmp_path: Path) -> None:
    weights = other.model.state_dict()
    for name, value in one.model.state_dict().items():
        assert torch.equal(value, weights[name]), name
    logs = [
        [{k: v for k, v in line.items() if k not in ("seconds", "joules")} for line in lines]
        for lines in (lines_of(tmp_path, "counted"), lines_of(tmp_path, "plain"))
    ]
    assert logs[0] == logs[1]


class Failing(FlopCounter):
    """Bears so many operations."""

    bears, left = 0, 0

    def __enter__(self) -> Failing:
        self.left = self.bears
        super().__enter__()
        return self

    def _count_flops(self, *arguments: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("no mode can be\nset here")
        return super()._count_flops(*arguments)


@pytest.mark.parametrize(("bears", "begun"), [(0, 0), (25, 1), (90, 2)])
def test_where_counting_fails_training_goes_on_as_if_nobody_had_counted(
    train: Callable[..., FitResult],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    bears: int,
    begun: int,
) -> None:
    """Dropout drew, the batch norm measured and gradients were there when it failed."""
    plain = train("plain", epochs=1)
    monkeypatch.setattr(toolkit.training.counted_step, "FlopCounter", Failing)
    monkeypatch.setattr(Failing, "bears", bears)
    spy = Spy()
    failed = train("counted", objective=spy, epochs=1)
    assert len(spy.padded) == 2 * 6 + begun  # passes when it failed
    assert_same_training(failed, plain, tmp_path)
    assert failed.state.flops is None
    assert failed.state.padded_tokens == plain.state.padded_tokens
    said = capsys.readouterr().err
    assert said.count("floating point operations are not counted") == 1
    assert "(RuntimeError: no mode can be)" in said


def test_an_error_of_the_step_itself_is_raised(train: Callable[..., FitResult]) -> None:
    class Broken(Spy):
        def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(objective=Broken())


def test_a_resumed_run_ends_with_the_same_operations(train: Callable[..., FitResult]) -> None:
    whole = train("whole").state
    with pytest.raises(KeyboardInterrupt):
        train("stopped", objective=Spy(stop_at=22))
    resumed = train("stopped", resume=True).state
    assert resumed.flops == whole.flops
    assert resumed.padded_tokens == whole.padded_tokens


def test_of_a_checkpoint_without_these_counts_nothing_is_claimed(
    train: Callable[..., FitResult], tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(objective=Spy(stop_at=22))
    new = ("padded_tokens", "flops_counted", "positions_counted", "joules", "energy_source")
    for file in (tmp_path / "reader" / "run" / "checkpoints").glob("*/trainer_state.json"):
        old = {k: v for k, v in json.loads(file.read_text()).items() if k not in new}
        file.write_text(json.dumps(old))
        manifest = json.loads(file.with_name("manifest.json").read_text())
        content = file.read_bytes()
        manifest[file.name] |= {
            "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)
        }  # fmt: skip
        file.with_name("manifest.json").write_text(json.dumps(manifest))
    state = train(resume=True).state
    assert state.step == 18
    assert state.tokens == 3 * sum(ROWS["length"][:])
    assert (state.padded_tokens, state.flops, state.joules) == (None, None, None)


def test_of_images_one_step_is_counted_and_of_texts_more() -> None:
    state = TrainState.at_start(1, None, count_flops=True)
    for images in (True, False):
        assert is_counted(state, images)
    state.positions_counted = state.flops_counted = 5
    for state.step in range(40):
        assert not is_counted(state, images=True)
        assert is_counted(state, images=False) == (state.step + 1 in (1, 2, 4, 8, 16, 32))
    state.flops_counted = None
    assert not is_counted(state, images=False)


def test_images_are_counted_by_their_number() -> None:
    state = TrainState(
        step=4, examples=50, padded_tokens=0, flops_counted=700, positions_counted=14
    )  # fmt: skip
    assert state.flops == 2500


# Energy


class Meter:
    """20 joules between two readings: a step takes 20, whatever happens between steps others."""

    def __init__(self, source: str | None = "a test") -> None:
        self.source, self.readings = source, 0

    def joules(self) -> float | None:
        self.readings += 1
        return None if self.source is None else 20.0 * self.readings


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Meter]:
    def use(source: str | None = "a test") -> Meter:
        found: Any = Meter(source)
        monkeypatch.setattr(
            toolkit.training.engine, "start_clock", lambda accelerator: Clock(found)
        )
        return found

    return use


def test_every_line_has_the_joules_of_the_steps_before_it_also_after_a_resume(
    train: Callable[..., FitResult], tmp_path: Path, meter: Callable[..., Meter]
) -> None:
    meter()
    assert train("whole").state.joules == 20 * 18
    for line in lines_of(tmp_path, "whole"):
        assert line["joules"] == 20 * line["step"]
    meter()
    with pytest.raises(KeyboardInterrupt):
        train("run", objective=Spy(stop_at=22))
    meter()
    state = train("run", resume=True).state
    assert (state.joules, state.energy_source) == (20 * 18, "a test")
    assert [line["joules"] for line in lines_of(tmp_path)] == [
        line["joules"] for line in lines_of(tmp_path, "whole")
    ]


@pytest.mark.parametrize(("before", "after"), [
    ("a test", "another meter"), ("a test", None), (None, "a test")
])  # fmt: skip
def test_joules_of_different_things_are_not_added_up(
    train: Callable[..., FitResult],
    tmp_path: Path,
    meter: Callable[..., Meter],
    before: str | None,
    after: str | None,
) -> None:
    meter(before)
    with pytest.raises(KeyboardInterrupt):
        train(objective=Spy(stop_at=22))
    meter(after)
    state = train(resume=True).state
    assert (state.joules, state.energy_source) == (None, None)
    assert "joules" not in lines_of(tmp_path)[-1]


def test_a_meter_that_fails_midway_leaves_no_part_of_the_sum(
    train: Callable[..., FitResult], tmp_path: Path, meter: Callable[..., Meter]
) -> None:
    found = meter()

    class Cut(Spy):
        def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
            if len(self.padded) == 10:
                found.source = None
            return super().loss(model, batch)

    assert train(objective=Cut()).state.joules is None
    assert ["joules" in line for line in lines_of(tmp_path)][:7] == [True] * 5 + [False] * 2


# The summary's section


def test_the_section_divides_and_leaves_out_what_is_not_known() -> None:
    section = cost_section(
        "random", seconds=4.0, joules=12.34567, energy_source="a test", tokens=6, padded_tokens=9,
        flops=800, machine=1000.0,
    )  # fmt: skip
    assert section == {
        "padding": "random", "tokens": 6, "padded_tokens": 9, "flops": 800,
        "flops_per_second": 200.0, "machine_flops_per_second": 1000.0, "utilisation": 0.2,
        "energy_joules": 12.346, "energy_source": "a test",
    }  # fmt: skip
    nothing = cost_section(None, seconds=0.0, joules=None, energy_source="a test")
    assert set(nothing) == set(section)
    assert set(nothing.values()) == {None}


@pytest.mark.parametrize(
    ("settings", "state", "expected"),
    [
        ({}, {"step": 0}, None),
        ({}, {"step": 1, "tokens": 3, "padded_tokens": 4}, "grouped by length"),
        ({"group_by_length": False}, {"step": 1, "tokens": 3, "padded_tokens": 4}, "random"),
        ({}, {"step": 1, "padded_tokens": 4}, "random"),  # rows that do not tell their length
        (
            {"batch_tokens": 100}, {"step": 1, "tokens": 3, "padded_tokens": 4},
            "batches by tokens",
        ),
        ({}, {"step": 1, "padded_tokens": 0}, "images"),
        ({}, {"step": 1, "tokens": 3}, "grouped by length"),  # of an older checkpoint
    ],
)  # fmt: skip
def test_the_padding_policy(
    settings: dict[str, Any], state: dict[str, Any], expected: str | None
) -> None:
    assert padding_policy(TrainConfig(**settings), TrainState(**state)) == expected


def test_the_machine_is_measured_once_by_the_main_process_in_the_precision_of_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def rate(device: torch.device, dtype: torch.dtype) -> float:
        asked.append((device.type, dtype))
        return 50.0

    monkeypatch.setattr(toolkit.cost, "matmul_rate", rate)
    state = TrainState(
        step=2, seconds=2.0, examples=4, tokens=8, padded_tokens=10, flops_counted=60,
        positions_counted=6,
    )  # fmt: skip

    def described(precision: str, processes: int = 1, main: bool = True) -> dict[str, Any]:
        accelerator = SimpleNamespace(
            mixed_precision=precision, device=torch.device("cpu"), num_processes=processes,
            is_main_process=main,
        )  # fmt: skip
        config = SimpleNamespace(train=TrainConfig())
        run: Any = SimpleNamespace(accelerator=accelerator, config=config)
        return describe_cost(run, state)

    alone = described("no")
    assert (alone["flops"], alone["flops_per_second"], alone["utilisation"]) == (100, 50, 1.0)
    two = described("bf16", processes=2)
    assert (two["machine_flops_per_second"], two["utilisation"]) == (100, 0.5)
    assert asked == [("cpu", torch.float32), ("cpu", torch.bfloat16)]
    assert described("no", main=False)["utilisation"] is None
    assert described("fp8")["machine_flops_per_second"] is None
    assert len(asked) == 2
    state.flops_counted = None
    assert described("no")["machine_flops_per_second"] is None
    assert len(asked) == 2  # nothing to set beside it
