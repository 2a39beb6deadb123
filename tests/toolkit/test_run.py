"""Run directories: made once, by one run, with what is needed to repeat it."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import toolkit.run
from toolkit.arguments import load_config
from toolkit.config import Invocation, RunConfig, TrainConfig
from toolkit.errors import RecipeEnds, UserError
from toolkit.run import Run, describe_run, start_run

pytestmark = pytest.mark.usefixtures("fresh_accelerator")


def start(tmp_path: Path, **settings: Any) -> Run[RunConfig]:
    return start_run(Invocation(RunConfig(output_dir=str(tmp_path), **settings), None), "recipe")


def test_nothing_is_made_before_begin(tmp_path: Path) -> None:
    run = start(tmp_path, run_id="a")
    assert list(tmp_path.iterdir()) == []
    run.begin()
    assert run.directory == tmp_path / "recipe" / "a"
    assert sorted(p.name for p in run.directory.iterdir()) == [
        "config.yaml", "environment.json", "run.lock",
    ]  # fmt: skip
    assert load_config(RunConfig, run.directory / "config.yaml") == run.config
    environment = json.loads((run.directory / "environment.json").read_text())
    assert environment["packages"]["torch"]
    assert describe_run(run, "t", "x", {})["command"] == environment["command"]


def test_the_configuration_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run killed in between is no run yet: without environment.json it could not end."""

    def killed(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(toolkit.run, "save_config", killed)
    run = start(tmp_path, run_id="a")
    with pytest.raises(KeyboardInterrupt):
        run.begin()
    assert sorted(p.name for p in run.directory.iterdir()) == ["environment.json", "run.lock"]


def test_two_runs_in_one_second_get_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolkit.run.time, "strftime", lambda form: "20260102-030405")
    names = []
    for _ in range(3):
        run = start(tmp_path)
        run.begin()
        names.append(run.directory.name)
    assert names == ["20260102-030405", "20260102-030405-2", "20260102-030405-3"]


def test_a_name_in_use_is_refused_early_and_late(tmp_path: Path) -> None:
    early = start(tmp_path, run_id="a")
    late = start(tmp_path, run_id="a")
    early.begin()
    with pytest.raises(UserError, match="exists already"):
        late.begin()  # somebody was faster
    with pytest.raises(UserError, match="--resume"):
        start(tmp_path, run_id="a")


def test_a_complete_run_is_not_resumed(tmp_path: Path) -> None:
    run = start(tmp_path, run_id="a")
    run.begin()
    resumed = start_run(Invocation(run.config, run.directory), "recipe")
    assert resumed.resumed
    assert resumed.directory == run.directory
    resumed.begin()  # makes nothing anew
    run.write_json("summary.json", {})
    with pytest.raises(UserError, match="this run is complete"):
        start_run(Invocation(run.config, run.directory), "recipe")


def test_the_lock_lasts_as_long_as_the_run(tmp_path: Path) -> None:
    run = start(tmp_path, run_id="a")
    run.begin()
    holder = json.loads((run.directory / "run.lock").read_text())
    assert (holder["pid"], holder["host"]) == (os.getpid(), socket.gethostname())
    run.complete({})
    assert not (run.directory / "run.lock").exists()


def test_a_run_that_another_process_writes_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(tmp_path, run_id="a")
    run.begin()

    def held(directory: Path) -> None:
        raise UserError(f"{directory} is being written")

    monkeypatch.setattr(toolkit.run, "hold", held)
    with pytest.raises(UserError, match="is being written"):
        start_run(Invocation(run.config, run.directory), "recipe")


def test_a_run_that_ends_while_one_waits_to_resume_it_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(tmp_path, run_id="a")
    run.begin()
    hold = toolkit.run.hold

    def late(directory: Path) -> None:
        run.complete({})
        hold(directory)

    monkeypatch.setattr(toolkit.run, "hold", late)
    with pytest.raises(UserError, match="this run is complete"):
        start_run(Invocation(run.config, run.directory), "recipe")
    assert not (run.directory / "run.lock").exists()


def test_data_are_recorded_when_training_begins_and_compared_when_it_goes_on(
    tmp_path: Path,
) -> None:
    data = {"source": "x.csv", "sizes": {"train": 9}, "sha256": {"train": "a"}}
    run = start(tmp_path, run_id="a")
    run.record_data(data)
    run.begin(training_rows=12)
    recorded = json.loads((run.directory / "data.json").read_text())
    assert recorded == data | {"training_rows": 12}
    resumed = start_run(Invocation(run.config, run.directory), "recipe")
    resumed.record_data(data)
    with pytest.raises(UserError, match="began with 12 rows"):
        resumed.begin(training_rows=11)
    with pytest.raises(UserError, match=r"the rows of train are others\..*Put x\.csv back"):
        resumed.record_data(data | {"sha256": {"train": "b"}})


def test_going_on_with_other_versions_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = start(tmp_path, run_id="a")
    run.begin()
    file = run.directory / "environment.json"
    then = json.loads(file.read_text())
    capsys.readouterr()
    start_run(Invocation(run.config, run.directory), "recipe")
    assert "otherwise" not in capsys.readouterr().err
    then["packages"] |= {"torch": "1.0", "peft": "0.1"}  # which computes nothing here
    file.write_text(json.dumps(then | {"processor": "Z80"}))
    start_run(Invocation(run.config, run.directory), "recipe")
    said = capsys.readouterr().err
    assert "processor: Z80 then" in said
    assert f"torch: 1.0 then, {torch.__version__.split('+')[0]} now" in said
    assert "not bit for bit" in said
    assert "peft" not in said
    recorded = json.loads(file.read_text())
    assert recorded["processor"] == "Z80"  # as it began
    [once] = recorded["continued_with"]
    assert once.keys() == {"processor", "packages.torch"}
    assert once["packages.torch"] == torch.__version__.split("+")[0]


def test_the_record_names_what_decides_results_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    for name in ("HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "hush")
    run = start(tmp_path, run_id="a")
    run.begin()
    text = (run.directory / "environment.json").read_text()
    recorded = json.loads(text)
    assert recorded["variables"]["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert recorded["accelerate"] == {
        "num_processes": 1, "distributed_type": "NO", "mixed_precision": "no", "dynamo": "NO",
        "device": "cpu",
    }  # fmt: skip
    assert recorded["cuda"] == torch.version.cuda
    assert {"cudnn", "float32_matmul_precision", "code", "git"} < recorded.keys()
    assert "hush" not in text


def test_a_run_of_another_recipe_is_not_resumed(tmp_path: Path) -> None:
    """Even where both have the same settings."""
    run = start(tmp_path, run_id="a")
    run.begin()
    with pytest.raises(
        UserError, match=rf"run of recipe, .* recipes/recipe\.py --resume {tmp_path}"
    ):
        start_run(Invocation(run.config, run.directory), "other")
    started = run.directory / "environment.json"
    older = {k: v for k, v in json.loads(started.read_text()).items() if k != "recipe"}
    started.write_text(json.dumps(older))
    assert start_run(Invocation(run.config, run.directory), "other").resumed


def test_the_seed_is_set(tmp_path: Path) -> None:
    import random

    def draw(seed: int) -> tuple[float, float, float]:
        start(tmp_path, seed=seed)
        return random.random(), float(np.random.rand()), float(torch.rand(()))

    assert draw(5) == draw(5)
    assert draw(5) != draw(6)


def test_log_and_forget(tmp_path: Path) -> None:
    run = start(tmp_path, run_id="a")
    run.begin()
    run.forget_after(3)  # nothing logged yet
    events = [{"step": 1}, {"step": 2, "validation": {"名": 1}}, {"step": 3}, {"step": 10}]
    for event in events:
        run.log(event)
    file = run.directory / "metrics.jsonl"
    with file.open("a", encoding="utf-8") as stream:
        stream.write('{"step": 2, "cut sh')
    run.forget_after(3)
    assert [json.loads(line) for line in file.read_text("utf-8").splitlines()] == events[:3]
    run.log({"step": 4})
    assert file.read_text("utf-8").endswith('{"step": 4}\n')
    assert "名" in file.read_text("utf-8")


def test_json_is_whole_or_absent_and_holds_no_nan(tmp_path: Path) -> None:
    run = start(tmp_path, run_id="a")
    run.begin()
    run.write_json("x.json", {"a": "文"})
    with pytest.raises(ValueError, match="JSON"):
        run.write_json("x.json", {"a": float("nan")})
    assert json.loads((run.directory / "x.json").read_text("utf-8")) == {"a": "文"}


@pytest.mark.parametrize(("asked", "said"), [(None, "fp32"), ("no", "fp32"), ("bf16", "bf16")])
def test_the_description_says_what_it_computes_in(tmp_path: Path, asked: Any, said: str) -> None:
    run = start(tmp_path, run_id="a", train=TrainConfig(mixed_precision=asked))
    run.begin()
    described = describe_run(run, "t", "x", {})["environment"]
    found = {key: described[key] for key in ("device", "threads", "precision", "processes")}
    assert found == {"device": "cpu", "threads": 1, "precision": said, "processes": 1}


def test_fp16_on_a_cpu_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "fp16")  # as `accelerate launch` passes it
    with pytest.raises(UserError, match="fp16 needs a GPU"):
        start(tmp_path)


def test_more_processes_than_connected_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="ACCELERATE_USE_CPU=true torchrun --nproc_per_node 2"):
        start(tmp_path)


def test_a_dry_run_makes_no_directory(tmp_path: Path) -> None:
    run = start(tmp_path, run_id="a", dry_run=True)
    with pytest.raises(RecipeEnds):
        run.begin()
    assert list(tmp_path.iterdir()) == []
