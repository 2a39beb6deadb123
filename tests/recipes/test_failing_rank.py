"""When one process fails all end, at once, and what failed is what is read first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RECIPE = HERE.parents[1] / "recipes" / "bert_sentiment.py"
SECONDS = 60
"""Far less than the minutes for which processes would wait for a lost one."""


@pytest.fixture
def arguments(exact_bert: Path, reviews: Path, tmp_path: Path) -> tuple[object, ...]:
    """The run fails in its seventh step of 25, after an evaluation and a checkpoint."""
    return (
        RECIPE, "--dataset", reviews, "--model", exact_bert, "--output-dir", tmp_path,
        "--run-id", "a", "--train.batch-size", "3", "--train.epochs", "1",
        "--train.evaluate-every", "5", "--train.log-every", "1",
    )  # fmt: skip


def assert_failed_in_step_seven(said: str, run: Path) -> None:
    assert "ValueError: this row is broken" in said
    first = said.index("Traceback (most recent call last)")
    end = said.index("this row is broken")
    assert first < end
    assert said.count("Traceback (most recent call last)", 0, end) == 1
    logged = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert 6 <= logged[-1]["step"] <= 7
    assert not (run / "summary.json").exists()


def test_the_other_process_ends_too(
    start_connected: Callable[..., list],
    join: Callable[..., list[int]],
    tmp_path: Path,
    arguments: tuple[object, ...],
) -> None:
    log = tmp_path / "log"
    processes = start_connected(log, *arguments, recipe=str(HERE / "one_rank_fails"))
    codes = join(processes, log, seconds=SECONDS)
    assert codes[1] == 1
    assert codes[0] != 0
    assert_failed_in_step_seven(log.read_text(encoding="utf-8"), tmp_path / "bert_sentiment" / "a")


@pytest.mark.slow
def test_torchrun_ends_all(tmp_path: Path, arguments: tuple[object, ...]) -> None:
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "3",
        HERE / "one_rank_fails.py", *arguments,
    ]  # fmt: skip
    environment = os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env=environment,
        timeout=3 * SECONDS,
    )  # fmt: skip
    assert done.returncode == 1
    assert_failed_in_step_seven(done.stderr, tmp_path / "bert_sentiment" / "a")
