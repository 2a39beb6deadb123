"""What would spoil a run that is resumed: other data, a second process that writes it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Start = Callable[..., Any]
RECIPES = Path(__file__).parents[2] / "recipes"
RECIPE = "bert_sentiment"


def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def wait_for(condition: Callable[[], bool], process: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def begin(start_process: Start, tmp_path: Path, tiny_bert: Path, reviews: Path) -> Start:
    """Start a run on a copy of the reviews and wait for its first checkpoint."""

    def start(*options: object) -> tuple[Any, Path, Path]:
        data = Path(shutil.copy(reviews, tmp_path / "reviews.csv"))
        run = tmp_path / RECIPE / "a"
        process = start_process(
            tmp_path / "log", RECIPE, "--dataset", data, "--model", tiny_bert, "--run-id", "a",
            "--output-dir", tmp_path, "--train.batch-size", "4", "--train.max-steps", "3000",
            "--train.save-every", "2", *options,
        )  # fmt: skip
        wait_for(lambda: any((run / "checkpoints").glob("step-*")), process)
        return process, run, data

    return start


def kill(process: Any) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.join(30)


def test_a_run_does_not_go_on_with_other_rows(
    begin: Start, run_recipe: Callable[..., Any], tmp_path: Path
) -> None:
    process, run, data = begin()
    kill(process)
    before = {file: file.stat().st_mtime_ns for file in run.rglob("*") if file.name != "run.lock"}
    lines = data.read_text(encoding="utf-8").splitlines()
    data.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    refused = run_recipe(RECIPE, "--resume", run)
    assert refused.status == 2
    assert "the data have changed since this run began: the rows of" in refused.error
    assert f"Put {data} back as it was, or start a new run" in refused.error
    assert before == {
        file: file.stat().st_mtime_ns for file in run.rglob("*") if file.name != "run.lock"
    }
    swapped = [lines[0], *lines[1:-1], lines[-1].replace("，", "") + "x"]
    data.write_text("\n".join(swapped) + "\n", encoding="utf-8")  # as many rows, another label
    assert run_recipe(RECIPE, "--resume", run).status == 2


def test_a_run_that_still_goes_is_not_resumed_nor_twice_at_once(
    begin: Start, start_process: Start, tmp_path: Path
) -> None:
    process, run, _ = begin("--train.workers", "2")
    second = start_process(tmp_path / "second", RECIPE, "--resume", run)
    second.join(60)
    assert second.exitcode == 2
    said = text_of(tmp_path / "second")
    assert f"is being written by process {process.pid} on host {socket.gethostname()}" in said
    assert "Traceback" not in said
    assert process.is_alive()
    kill(process)
    third = start_process(tmp_path / "third", RECIPE, "--resume", run)
    wait_for(lambda: "resuming" in text_of(tmp_path / "third"), third)
    fourth = start_process(tmp_path / "fourth", RECIPE, "--resume", run)
    fourth.join(60)
    assert fourth.exitcode == 2
    assert f"is being written by process {third.pid} " in text_of(tmp_path / "fourth")
    kill(third)


def test_all_processes_learn_that_another_one_writes_the_run(
    begin: Start, start_process: Start, tmp_path: Path
) -> None:
    process, run, _ = begin()
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    two = [
        start_process(
            tmp_path / "two", RECIPE, "--resume", run, RANK=rank, LOCAL_RANK=rank, WORLD_SIZE="2",
            LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
        )
        for rank in ("0", "1")
    ]  # fmt: skip
    for one in two:
        one.join(60)
    assert [one.exitcode for one in two] == [2, 2], text_of(tmp_path / "two")
    assert text_of(tmp_path / "two").count(f"is being written by process {process.pid}") == 2
    kill(process)


def test_every_recipe_refuses_other_data(
    run_recipe: Callable[..., Any],
    tiny: Callable[..., Any],
    tiny_recipe: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("toolkit.training.engine._train", interrupted)
        began = run_recipe(tiny_recipe, *tiny(tiny_recipe, dropout=0.1), "--output-dir", tmp_path)
    assert began.status == 130, began.err
    run = tmp_path / tiny_recipe / "a"
    recorded = json.loads((run / "data.json").read_text(encoding="utf-8"))
    assert all(re.fullmatch("[0-9a-f]{64}", found) for found in recorded["sha256"].values())
    assert recorded["sizes"]["train"] == 100
    assert recorded["training_rows"] > 0
    recorded["sha256"]["train"] = "0" * 64
    (run / "data.json").write_text(json.dumps(recorded), encoding="utf-8")
    assert "the rows of train are others" in run_recipe(tiny_recipe, "--resume", run).error


@pytest.mark.parametrize("recipe", sorted(file.stem for file in RECIPES.glob("*.py")))
def test_every_recipe_records_its_data(recipe: str) -> None:
    assert text_of(RECIPES / f"{recipe}.py").count("    run.record_data(") == 1
