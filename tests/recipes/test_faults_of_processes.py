"""Two processes that are killed, interrupted, or find the disk full go on in the same bits."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

Start = Callable[..., list[Any]]
Join = Callable[..., list[int]]


@pytest.fixture(scope="session")
def arguments(exact_bert: Path, reviews: Path) -> tuple[object, ...]:
    """149 training rows (an uneven tail), in two processes and three passes a step."""
    return (
        "--dataset", reviews, "--model", exact_bert, "--train.epochs", "2",
        "--train.learning-rate", "0.005", "--train.log-every", "1", "--run-id", "a",
        "--train.batch-size", "4", "--train.accumulation-steps", "3", "--train.save-every", "2",
        "--train.evaluate-every", "5",
    )  # fmt: skip


@pytest.fixture(scope="session")
def whole(
    start_connected: Start,
    join: Join,
    tmp_path_factory: pytest.TempPathFactory,
    arguments: tuple[object, ...],
) -> Path:
    """A run that is left alone."""
    root = tmp_path_factory.mktemp("two")
    processes = start_connected(root / "log", *arguments, "--output-dir", root)
    assert join(processes, root / "log") == [0, 0], (root / "log").read_text("utf-8")
    return root / "bert_sentiment" / "a"


def log_of(run: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (run / "metrics.jsonl").read_text("utf-8").splitlines())
    return [{k: v for k, v in line.items() if k not in ("seconds", "joules")} for line in lines]


def wait_for_step(processes: list[Any], run: Path, step: int) -> None:
    log = run / "metrics.jsonl"
    while not log.exists() or log.read_text("utf-8").count('"learning_rate"') < step:
        assert all(process.is_alive() for process in processes)
        time.sleep(0.002)


def assert_same_bits(run: Path, whole: Path) -> None:
    weights, expected = (load_file(r / "model" / "model.safetensors") for r in (run, whole))
    assert all(value.equal(expected[name]) for name, value in weights.items())
    assert log_of(run) == log_of(whole)


@pytest.mark.parametrize(
    "times", [2, pytest.param(20, marks=pytest.mark.slow)], ids="{} times".format
)
def test_killed_at_random_moments_two_processes_resume_to_the_same_bits(
    start_connected: Start,
    join: Join,
    tmp_path: Path,
    whole: Path,
    arguments: tuple[object, ...],
    times: int,
) -> None:
    generator = random.Random(times)
    for number in range(times):
        root = tmp_path / str(number)
        root.mkdir()
        run = root / "bert_sentiment" / "a"
        processes = start_connected(root / "log", *arguments, "--output-dir", root)
        wait_for_step(processes, run, generator.randint(1, 12))
        time.sleep(generator.random() / 20)
        for process in generator.sample(processes, 2):
            process.kill()
        join(processes, root / "log")
        processes = start_connected(root / "log", "--resume", run)
        assert join(processes, root / "log") == [0, 0], (root / "log").read_text("utf-8")
        assert_same_bits(run, whole)


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_when_one_process_is_interrupted_both_save_and_end(
    start_connected: Start,
    join: Join,
    tmp_path: Path,
    whole: Path,
    arguments: tuple[object, ...],
    rank: int,
) -> None:
    log, run = tmp_path / "log", tmp_path / "bert_sentiment" / "a"
    processes = start_connected(log, *arguments, "--output-dir", tmp_path)
    wait_for_step(processes, run, 6)
    os.kill(processes[rank].pid, signal.SIGINT)
    assert join(processes, log) == [130, 130], log.read_text("utf-8")
    said = log.read_text("utf-8")
    assert "Traceback" not in said
    last = log_of(run)[-1]["step"]
    assert said.count(f"interrupted after step {last}, which is saved") == 1  # one speaks
    assert "torchrun --nproc_per_node 2" in said
    processes = start_connected(log, "--resume", run)
    assert join(processes, log) == [0, 0], log.read_text("utf-8")
    assert_same_bits(run, whole)


@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_when_one_process_finds_the_disk_full_both_end(
    start_connected: Start,
    join: Join,
    tmp_path: Path,
    whole: Path,
    arguments: tuple[object, ...],
    rank: int,
) -> None:
    """The first writes weights and optimizer, the second its random states alone (5 kB)."""
    log, run = tmp_path / "log", tmp_path / "bert_sentiment" / "a"
    options = (*arguments, "--train.wait-for-space", "0", "--output-dir", tmp_path)
    processes = start_connected(log, *options)
    wait_for_step(processes, run, 5)
    limit = (20_000 if rank == 0 else 1_000, resource.RLIM_INFINITY)
    resource.prlimit(processes[rank].pid, resource.RLIMIT_FSIZE, limit)
    assert join(processes, log) == [2, 2], log.read_text("utf-8")
    said = log.read_text("utf-8")
    assert "Traceback" not in said
    assert "is intact: make room" in said
    processes = start_connected(log, "--resume", run)
    assert join(processes, log) == [0, 0], log.read_text("utf-8")
    assert_same_bits(run, whole)
