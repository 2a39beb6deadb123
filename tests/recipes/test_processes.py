"""Two connected processes compute what one does; two that are not connected are refused.

So it is for every recipe; the sentiment recipe is looked at more closely.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from pyarrow import parquet
from safetensors.torch import load_file

Start = Callable[..., Any]
Join = Callable[..., list[int]]
HERE = Path(__file__).parent
RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.fixture(scope="session")
def arguments(exact_bert: Path, reviews: Path) -> tuple[object, ...]:
    """149 training rows (an uneven tail), 18 to evaluate on: less than a batch for each of two."""
    return (
        "--dataset", reviews, "--model", exact_bert, "--train.epochs", "2",
        "--train.learning-rate", "0.005", "--train.log-every", "1", "--run-id", "a",
        "--validation-size", "17", "--train.eval-batch-size", "16",
    )  # fmt: skip


def log_of(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def assert_same_results(two: Path, one: Path, processes: int = 2, validated: int = 17) -> None:
    """Within rounding: losses, evaluations, predictions, weights; and every row counted once."""
    logs = [log_of(two), log_of(one)]
    assert [line["step"] for line in logs[0]] == [line["step"] for line in logs[1]]
    for ours, theirs in zip(*logs, strict=True):
        if "loss" in theirs:
            assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-4)
            assert ours["learning_rate"] == theirs["learning_rate"]
            assert (ours["examples"], ours["tokens"]) == (theirs["examples"], theirs["tokens"])
        else:
            assert ours["validation"] == pytest.approx(theirs["validation"], abs=1e-3)
    for split in ("validation", "test"):
        tables = [pandas.read_parquet(r / "predictions" / f"{split}.parquet") for r in (two, one)]
        assert list(tables[0]["id"]) == list(tables[1]["id"])
        ours, theirs = (np.stack(table["probabilities"]) for table in tables)
        assert np.abs(ours - theirs).max() < 1e-3
    summaries = [json.loads((r / "summary.json").read_text()) for r in (two, one)]
    assert [s["environment"]["processes"] for s in summaries] == [processes, 1]
    assert summaries[0]["validation"]["accuracy"]["n"] == validated
    for part in ("validation", "test"):
        assert summaries[0][part] == summaries[1][part]
    assert summaries[0]["data"] == summaries[1]["data"]
    assert summaries[0]["training"]["steps"] == summaries[1]["training"]["steps"]
    costs = [summary["training"] for summary in summaries]
    assert costs[0]["tokens"] == costs[1]["tokens"] <= costs[0]["padded_tokens"]
    # Other batches have other padding; half of it all would be one process's share.
    for name in ("padded_tokens", "flops"):
        assert costs[0][name] == pytest.approx(costs[1][name], rel=0.3)
    weights = [load_file(r / "model" / "model.safetensors") for r in (two, one)]
    for name, value in weights[0].items():
        if name.endswith("key.bias"):
            continue  # its gradient is zero but for rounding, which Adam blows up to full steps
        assert (value - weights[1][name]).abs().max() < 1e-3, name


@pytest.fixture(scope="session")
def one_process(
    start_process: Start, tmp_path_factory: pytest.TempPathFactory, arguments: tuple[object, ...]
) -> Path:
    """A global batch of 24."""
    root = tmp_path_factory.mktemp("one")
    process = start_process(
        root / "log", "bert_sentiment", *arguments, "--output-dir", root, "--train.batch-size", "24"
    )
    process.join(90)
    assert process.exitcode == 0, (root / "log").read_text(encoding="utf-8")
    return root / "bert_sentiment" / "a"


def test_two_processes_equal_one_with_the_same_global_batch(
    start_connected: Start,
    join: Join,
    tmp_path: Path,
    one_process: Path,
    arguments: tuple[object, ...],
) -> None:
    split = (
        "--train.batch-size", "6", "--train.accumulation-steps", "2", "--tracker", "tensorboard",
    )  # fmt: skip
    log = tmp_path / "log"
    processes = start_connected(log, *arguments, *split, "--output-dir", tmp_path)
    assert join(processes, log) == [0, 0], log.read_text(encoding="utf-8")
    assert_same_results(tmp_path / "bert_sentiment" / "a", one_process)
    said = log.read_text(encoding="utf-8")
    assert said.count("run directory") == 1  # one process speaks
    written = list((tmp_path / "bert_sentiment" / "a" / "tensorboard").iterdir())
    assert len(written) == 1  # and one is tracked
    assert "Traceback" not in said


def test_frozen_features_on_two_processes_equal_one(
    start_connected: Start,
    join: Join,
    tmp_path: Path,
    arguments: tuple[object, ...],
    run_recipe: Any,
) -> None:
    log, frozen = tmp_path / "log", ("--method", "frozen", "--output-dir")
    processes = start_connected(log, *arguments, *frozen, tmp_path / "two")
    finished = run_recipe("bert_sentiment", *arguments, *frozen, tmp_path / "one")
    assert finished.status == 0, finished.err
    assert join(processes, log) == [0, 0], log.read_text(encoding="utf-8")
    two, one = (
        pandas.read_parquet(tmp_path / name / "bert_sentiment/a/predictions/test.parquet")
        for name in ("two", "one")
    )
    assert list(two["id"]) == list(one["id"])
    difference = np.stack(two["probabilities"]) - np.stack(one["probabilities"])
    assert np.abs(difference).max() < 1e-4


def test_unconnected_processes_are_refused_with_the_command_that_connects_them(
    start_connected: Start, join: Join, tmp_path: Path, arguments: tuple[object, ...]
) -> None:
    log = tmp_path / "log"
    processes = start_connected(
        log, *arguments, "--output-dir", tmp_path, ACCELERATE_USE_CPU="false"
    )
    assert join(processes, log) == [2, 2]
    said = log.read_text(encoding="utf-8")
    assert "2 processes were started, but each of them works alone" in said
    assert "ACCELERATE_USE_CPU=true torchrun --nproc_per_node 2" in said
    assert "Traceback" not in said
    assert not (tmp_path / "bert_sentiment").exists()


@pytest.mark.parametrize(
    "way", ["whole models", pytest.param("divided by FSDP2", marks=pytest.mark.slow)]
)
def test_every_recipe_gives_the_same_on_two_processes(
    start_process: Start,
    start_connected: Start,
    join: Join,
    tiny: Callable[..., Any],
    tiny_recipe: str,
    way: str,
    tmp_path: Path,
) -> None:
    arguments = (*tiny(tiny_recipe, dropout=0), "--train.max-steps", "6", "--train.evaluate-every",
                 "3", "--train.eval-batch-size", "4")  # fmt: skip
    recipe, divided = tiny_recipe, ()
    if way == "divided by FSDP2":
        recipe, divided = str(HERE / "fsdp2_on_cpu"), (RECIPES / f"{tiny_recipe}.py",)
        arguments = (*arguments, "--train.ema", "null")  # which needs whole models
    roots = {processes: tmp_path / processes for processes in ("one", "two")}
    for root in roots.values():
        root.mkdir()
    alone = start_process(
        roots["one"] / "log", tiny_recipe, *arguments, "--train.batch-size", "24", "--output-dir",
        roots["one"],
    )  # fmt: skip
    processes = start_connected(
        roots["two"] / "log", *divided, *arguments, "--train.batch-size", "6",
        "--train.accumulation-steps", "2", "--output-dir", roots["two"], recipe=recipe,
    )  # fmt: skip
    assert join([alone], roots["one"] / "log") == [0], (roots["one"] / "log").read_text("utf-8")
    assert join(processes, roots["two"] / "log") == [0, 0], (roots["two"] / "log").read_text(
        "utf-8"
    )
    two, one = (roots[processes] / tiny_recipe / "a" for processes in ("two", "one"))
    measured = ("seconds", "joules")
    logs = [[{k: v for k, v in line.items() if k not in measured} for line in log_of(run)]
            for run in (two, one)]  # fmt: skip
    assert len([line for line in logs[1] if "loss" in line]) == 6
    assert logs[0] == close_to(logs[1])
    summaries = [json.loads((r / "summary.json").read_text(encoding="utf-8")) for r in (two, one)]
    assert [s["environment"]["processes"] for s in summaries] == [2, 1]
    for part in ("model", "data", "validation", "test"):
        assert summaries[0][part] == close_to(summaries[1][part])
    for file in (one / "predictions").iterdir():
        tables = [parquet.read_table(r / "predictions" / file.name).to_pylist() for r in (two, one)]
        assert tables[0] == close_to(tables[1])


@pytest.mark.slow
def test_four_processes_equal_one(
    start_connected: Start,
    start_process: Start,
    join: Join,
    tmp_path: Path,
    exact_bert: Path,
    write_reviews: Callable[..., Path],
) -> None:
    """A tail of 3 training rows, and 5 to be tested on: fewer than processes x batch in both."""
    arguments = (
        "--dataset", write_reviews(tmp_path / "reviews.csv", 61), "--model", exact_bert,
        "--train.epochs", "2", "--train.learning-rate", "0.005", "--train.log-every", "1",
        "--run-id", "a", "--validation-size", "5", "--test-size", "5",
        "--train.eval-batch-size", "4",
    )  # fmt: skip
    logs = {number: tmp_path / f"log{number}" for number in (1, 4)}
    alone = start_process(
        logs[1], "bert_sentiment", *arguments, "--train.batch-size", "16", "--output-dir",
        tmp_path / "1",
    )  # fmt: skip
    assert join([alone], logs[1]) == [0], logs[1].read_text(encoding="utf-8")
    processes = start_connected(
        logs[4], *arguments, "--train.batch-size", "2", "--train.accumulation-steps", "2",
        "--output-dir", tmp_path / "4", number=4,
    )  # fmt: skip
    assert join(processes, logs[4], seconds=180) == [0] * 4, logs[4].read_text(encoding="utf-8")
    four, one = (tmp_path / number / "bert_sentiment" / "a" for number in ("4", "1"))
    assert_same_results(four, one, processes=4, validated=5)
    rates = [[line["learning_rate"] for line in log_of(run) if "loss" in line]
             for run in (four, one)]  # fmt: skip
    assert rates[0] == rates[1]
    assert len(rates[0]) == 8  # 51 rows, 16 a step: 4 steps an epoch, the last of 3 rows
    for run in (four, one):
        tested = pandas.read_parquet(run / "predictions" / "test.parquet")
        assert len(tested) == tested["id"].nunique() == 5


def close_to(values: Any) -> Any:
    """Equal to the same structure whose numbers differ by rounding."""
    if isinstance(values, dict):
        return {key: close_to(value) for key, value in values.items()}
    if isinstance(values, list):
        return [close_to(value) for value in values]
    return pytest.approx(values, abs=1e-5, rel=1e-5) if isinstance(values, float) else values


@pytest.mark.slow
def test_torchrun_itself(tmp_path: Path, one_process: Path, arguments: tuple[object, ...]) -> None:
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
        RECIPES / "bert_sentiment.py", *arguments, "--train.batch-size", "12",
        "--output-dir", tmp_path,
    ]  # fmt: skip
    environment = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    run = tmp_path / "bert_sentiment" / "a"
    assert_same_results(run, one_process)
    started = json.loads((run / "environment.json").read_text())["command"]
    assert started.startswith("torchrun --nproc_per_node 2 ")
