"""What a tracker is told: read back from TensorBoard's files, or as wandb was called."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import accelerate.tracking
import numpy as np
import pytest
from accelerate.state import AcceleratorState, GradientState
from packaging.requirements import Requirement
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.metadata import (
    SESSION_START_INFO_TAG,
    parse_session_start_info_plugin_data,
)

import toolkit.trackers
from toolkit.config import Invocation, RunConfig, TrainConfig
from toolkit.entry import run_recipe
from toolkit.errors import UserError
from toolkit.launch import import_recipe
from toolkit.run import Run, start_run
from toolkit.trackers import OLDEST, flat_config, numbers, require_package

pytestmark = pytest.mark.usefixtures("fresh_accelerator")


@pytest.fixture
def recipe(
    repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Path]:
    """Run a recipe in this process; its run directory is tmp_path/<recipe>/a."""

    def run(name: str, *argv: object) -> Path:
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
        file = repository / "recipes" / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(file), *map(str, argv)])
        module = import_recipe(file)
        run_recipe(module.main, module.Config, str(file))
        return tmp_path / name / "a"

    return run


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory, write_reviews: Callable[..., Path]) -> Path:
    return write_reviews(tmp_path_factory.mktemp("data") / "reviews.csv", 60)


@pytest.fixture(scope="module")
def training(
    tmp_path_factory: pytest.TempPathFactory,
    write_tiny_bert: Callable[..., Path],
    reviews: Path,
) -> tuple[object, ...]:
    """Three epochs of six steps, with dropout; a checkpoint after each."""
    model = write_tiny_bert(tmp_path_factory.mktemp("model") / "bert")
    return (
        "--dataset", reviews, "--model", model, "--train.epochs", "3", "--train.batch-size", "8",
        "--train.learning-rate", "0.01", "--train.log-every", "1", "--run-id", "a",
        "--freeze-layers", "1",
    )  # fmt: skip


def start(tmp_path: Path, tracker: str, **settings: Any) -> Run[RunConfig]:
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    config = RunConfig(output_dir=str(tmp_path), run_id="a", tracker=tracker, **settings)  # type: ignore[arg-type]
    return start_run(Invocation(config, None), "recipe")


def lines_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]


def tensorboard_of(run: Path) -> EventAccumulator:
    accumulator = EventAccumulator(str(run / "tensorboard"))
    accumulator.Reload()
    return accumulator


def curve(accumulator: EventAccumulator, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in accumulator.Scalars(tag)]


def as_stored(pairs: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """TensorBoard keeps single precision."""
    return [(step, float(np.float32(value))) for step, value in pairs]


def hyperparameters_of(accumulator: EventAccumulator) -> dict[str, Any]:
    content = accumulator.SummaryMetadata(SESSION_START_INFO_TAG).plugin_data.content
    info = parse_session_start_info_plugin_data(content)
    return {name: getattr(v, v.WhichOneof("kind")) for name, v in info.hparams.items()}


def assert_same_curves(run: Path) -> None:
    """TensorBoard's curves are the lines of metrics.jsonl and the results of summary.json."""
    accumulator, lines = tensorboard_of(run), lines_of(run)
    trained = [line for line in lines if "loss" in line]
    assert len(trained) == 18
    for name in ("loss", "learning_rate", "grad_norm", "tokens", "examples"):
        expected = [(line["step"], line[name]) for line in trained]
        assert curve(accumulator, name) == as_stored(expected), name
    evaluated = [line for line in lines if "validation" in line]
    assert len(evaluated) == 3
    for name in evaluated[0]["validation"]:
        expected = [(line["step"], line["validation"][name]) for line in evaluated]
        assert curve(accumulator, f"validation/{name}") == as_stored(expected), name
    test = json.loads((run / "summary.json").read_text())["test"]
    expected = [(18, test["accuracy"]["value"])]
    assert curve(accumulator, "test/accuracy") == as_stored(expected)
    assert curve(accumulator, "test/macro_f1") == as_stored([(18, test["macro_f1"]["value"])])
    settings = hyperparameters_of(accumulator)
    assert settings["train.learning_rate"] == 0.01
    assert settings["train.group_by_length"] is True
    assert settings["method"] == "full"
    assert settings["freeze_layers"] == 1
    assert settings["lora.targets"] == '["query", "value"]'
    assert "dropout" not in settings  # null


def test_tensorboard_holds_what_metrics_jsonl_holds_and_changes_nothing(
    recipe: Callable[..., Path], tmp_path: Path, training: tuple[object, ...]
) -> None:
    run = recipe("bert_sentiment", *training, "--output-dir", tmp_path, "--tracker", "tensorboard")
    assert_same_curves(run)
    recipe("bert_sentiment", *training, "--output-dir", tmp_path / "without")
    without = tmp_path / "without" / "bert_sentiment" / "a"
    assert not (without / "tensorboard").exists()
    logs = [
        [line | {"seconds": 0, "joules": 0} for line in lines_of(folder)]
        for folder in (run, without)
    ]
    assert logs[0] == logs[1]


@pytest.mark.slow
def test_a_resumed_run_goes_on_in_the_same_folder(
    recipe: Callable[..., Path],
    tmp_path: Path,
    training: tuple[object, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Interrupted at step 9, it goes on from the checkpoint of step 6: 7 to 9 are logged again."""
    log = Run.log

    def interrupted(run: Run[Any], event: dict[str, Any], **how: Any) -> None:
        log(run, event, **how)
        if event["step"] == 9:
            raise KeyboardInterrupt

    arguments = (*training, "--output-dir", tmp_path, "--tracker", "tensorboard")
    monkeypatch.setattr(Run, "log", interrupted)
    with pytest.raises(SystemExit):
        recipe("bert_sentiment", *arguments)
    monkeypatch.setattr(Run, "log", log)
    run = tmp_path / "bert_sentiment" / "a"
    assert [step for step, _ in curve(tensorboard_of(run), "loss")] == list(range(1, 10))
    recipe("bert_sentiment", "--resume", run)
    assert len(list((run / "tensorboard").glob("events*"))) == 2
    assert_same_curves(run)


def test_a_run_resumed_after_its_last_step_puts_the_results_there(tmp_path: Path) -> None:
    run = start(tmp_path, "tensorboard")
    run.begin()
    run.log({"step": 5, "loss": 0.5})
    resumed = start_run(Invocation(run.config, run.directory), "recipe")
    resumed.begin()
    resumed.forget_after(5)
    resumed.complete(SUMMARY)
    accumulator = tensorboard_of(run.directory)
    assert curve(accumulator, "loss") == [(5, 0.5)]
    assert curve(accumulator, "test/accuracy") == [(5, 0.75)]


def test_a_recipe_without_training_steps_is_tracked_too(
    recipe: Callable[..., Path], tmp_path: Path, reviews: Path
) -> None:
    run = recipe(
        "tfidf_sentiment", "--dataset", reviews, "--output-dir", tmp_path, "--run-id", "a",
        "--tracker", "tensorboard",
    )  # fmt: skip
    accumulator, lines = tensorboard_of(run), lines_of(run)
    tried = [(number, line["C"]) for number, line in enumerate(lines, start=1)]
    assert len(tried) == 6
    assert curve(accumulator, "C") == as_stored(tried)
    accuracies = [(n, line["validation"]["accuracy"]) for n, line in enumerate(lines, start=1)]
    assert curve(accumulator, "validation/accuracy") == as_stored(accuracies)
    test = json.loads((run / "summary.json").read_text())["test"]["accuracy"]["value"]
    assert curve(accumulator, "test/accuracy") == as_stored([(6, test)])
    assert hyperparameters_of(accumulator)["ngrams"] == 3


@pytest.mark.parametrize("installed", [None, "0.1"])
def test_a_package_missing_or_too_old_is_said_before_data_is_read(
    recipe: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    installed: str | None,
) -> None:
    available = [] if installed is None else [accelerate.tracking.LoggerType.WANDB]
    monkeypatch.setattr(accelerate.tracking, "_available_trackers", available)
    monkeypatch.setattr(toolkit.trackers, "version", lambda name: installed)
    with pytest.raises(SystemExit) as ended:
        recipe("tfidf_sentiment", "--dataset", tmp_path / "none.csv", "--tracker", "wandb",
               "--output-dir", tmp_path)  # fmt: skip
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert ("not installed" if installed is None else "version 0.1 is too old") in said
    assert "pip install 'wandb>=0.31'" in said
    assert "none.csv" not in said
    assert list(tmp_path.iterdir()) == []


def test_the_versions_are_those_of_the_extra(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]
    extra = [Requirement(line) for line in project["optional-dependencies"]["trackers"]]
    assert {r.name: str(r.specifier) for r in extra} == {n: f">={v}" for n, v in OLDEST.items()}
    require_package("tensorboard")
    require_package(None)


class FakeWandb(SimpleNamespace):
    """wandb's functions as far as accelerate and we call them; remembers how."""

    def __init__(self, mode: str = "online", login: Any = True) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.mode, self.answer, self.broken = mode, login, False
        self.errors = SimpleNamespace(Error=OSError)

    def setup(self) -> Any:
        return SimpleNamespace(settings=SimpleNamespace(mode=self.mode))

    def login(self, **how: Any) -> bool:
        self.calls.append(("login", how))
        if isinstance(self.answer, Exception):
            raise self.answer
        return bool(self.answer)

    def init(self, **how: Any) -> FakeWandb:
        if self.broken:
            raise ValueError("run a was deleted")
        self.calls.append(("init", how))
        return self

    def log(self, values: dict[str, Any], step: int | None = None) -> None:
        if self.broken:
            raise OSError("disk full")
        self.calls.append(("log", step, values))

    def finish(self) -> None:
        self.calls.append(("finish",))


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeWandb]:
    def install(**answers: Any) -> FakeWandb:
        fake = FakeWandb(**answers)
        monkeypatch.setitem(sys.modules, "wandb", fake)  # type: ignore[arg-type]
        available = [accelerate.tracking.LoggerType.WANDB]
        monkeypatch.setattr(accelerate.tracking, "_available_trackers", available)
        monkeypatch.setattr(toolkit.trackers, "version", lambda n: OLDEST[n])
        return fake

    return install


SUMMARY = {
    "test": {
        "accuracy": {"value": 0.75, "n": 4, "interval": [0.3, 0.9]},
        "confusion": [[1, 2], [3, 4]],
        "entity_f1": {"value": None},
    }
}


def test_wandb_gets_project_name_settings_numbers_and_results(
    wandb: Callable[..., FakeWandb], tmp_path: Path
) -> None:
    fake = wandb()
    run = start(tmp_path, "wandb", seed=7)
    run.begin()
    run.log({"step": 3, "epoch": 0, "loss": 0.5})
    run.log({"step": 3, "validation": {"accuracy": 0.25, "note": "text"}})
    run.log({"step": 4, "samples": [{"text": "一"}]})  # no number
    run.complete(SUMMARY)
    login, init, *rest = fake.calls
    assert login == ("login", {"prompt": False, "verify": True})
    how = dict(init[1])
    assert how.pop("config") == flat_config(run.config)
    assert how.pop("settings") == {"finish_timeout": 120.0}
    assert how == {
        "project": "recipe", "id": "a", "name": "a", "resume": "never",
        "dir": str((tmp_path / "recipe" / "a").resolve()),
    }  # fmt: skip
    assert rest == [
        ("log", 3, {"epoch": 0, "loss": 0.5}),
        ("log", 3, {"validation/accuracy": 0.25}),
        ("log", None, {"test/accuracy": 0.75}),
        ("finish",),
    ]


def test_a_resumed_run_may_go_on_in_wandb(wandb: Callable[..., FakeWandb], tmp_path: Path) -> None:
    fake = wandb()
    run = start(tmp_path, "wandb")
    run.begin()
    resumed = start_run(Invocation(run.config, run.directory), "recipe")
    resumed.begin()
    inits = [call[1] for call in fake.calls if call[0] == "init"]
    assert [(how["id"], how["resume"]) for how in inits] == [("a", "never"), ("a", "allow")]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"login": False}, "nobody is logged in.*wandb login.*WANDB_MODE=offline"),
        ({"login": OSError("server gone")}, "server gone.*wandb login.*WANDB_MODE=offline"),
    ],
)
def test_who_is_not_logged_in_is_told_before_training(
    wandb: Callable[..., FakeWandb], tmp_path: Path, answers: dict[str, Any], said: str
) -> None:
    wandb(**answers)
    with pytest.raises(UserError, match=said):
        start(tmp_path, "wandb")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", ["offline", "dryrun", "disabled"])
def test_offline_nobody_has_to_be_logged_in(
    wandb: Callable[..., FakeWandb], tmp_path: Path, mode: str
) -> None:
    fake = wandb(mode=mode, login=False)
    start(tmp_path, "wandb").begin()
    assert [call[0] for call in fake.calls] == ["init"]


def test_a_tracker_that_cannot_start_leaves_no_run(
    wandb: Callable[..., FakeWandb], tmp_path: Path
) -> None:
    fake = wandb()
    run = start(tmp_path, "wandb")
    fake.broken = True
    with pytest.raises(UserError, match=r"could not be started \(ValueError: run a was deleted"):
        run.begin()
    assert not run.directory.exists()
    fake.broken = False
    start(tmp_path, "wandb").begin()  # the same name again


def test_a_tracker_that_breaks_is_left_behind(
    wandb: Callable[..., FakeWandb], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = wandb()
    run = start(tmp_path, "wandb")
    run.begin()
    fake.broken = True
    for step in (1, 2):
        run.log({"step": step, "loss": 0.5})
    run.complete(SUMMARY)
    assert capsys.readouterr().err.count("warning: wandb failed (OSError: disk full)") == 1
    assert [line["step"] for line in lines_of(run.directory)] == [1, 2]
    assert (run.directory / "summary.json").exists()


def test_numbers_and_settings_by_name() -> None:
    event = {"step": 1, "loss": 0.5, "tokens": 3, "note": "x", "validation": {"f1": 1.0, "n": None}}
    assert numbers(event) == {"loss": 0.5, "tokens": 3, "validation/f1": 1.0}
    config = RunConfig(train=TrainConfig(max_steps=None, epochs=2), seed=9, tracker="tensorboard")
    flat = flat_config(config)
    assert (flat["train.epochs"], flat["seed"], flat["tracker"]) == (2, 9, "tensorboard")
    assert "train.max_steps" not in flat
