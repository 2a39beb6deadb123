"""`toolkit rerun` on real recipes: to the last bit, and not where something changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolkit.cli
import toolkit.rerun.repeating

SMALL = (
    "--method", "from_scratch", "--shape.layers", "1", "--shape.hidden-size", "16",
    "--shape.heads", "2", "--train.batch-size", "16", "--train.max-steps", "6",
    "--train.log-every", "1", "--run-id", "a",
)  # fmt: skip


@pytest.fixture
def rerun(
    run_recipe: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., tuple[int, str]]:
    """Status and what is said; the recipe runs in this process."""

    def start(module: Any, file: Path, arguments: list[str]) -> int:
        status: int = run_recipe(file.stem, *arguments).status
        return status

    monkeypatch.setattr(toolkit.rerun.repeating, "start_recipe", start)

    def run(*argv: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            toolkit.cli.main(["rerun", *map(str, argv)])
        captured = capsys.readouterr()
        return int(ended.value.code or 0), " ".join((captured.out + captured.err).split())

    return run


def test_a_run_repeats_to_the_last_bit_and_other_rows_do_not(
    run_recipe: Any, rerun: Any, reviews: Path, tmp_path: Path
) -> None:
    data = shutil.copy(reviews, tmp_path / "reviews.csv")
    finished = run_recipe("bert_sentiment", "--dataset", data, *SMALL)
    assert finished.status == 0, finished.err
    run = tmp_path / "results" / "runs" / "bert_sentiment" / "a"
    status, said = rerun(run, "--json", tmp_path / "said.json")
    assert status == 0, said
    compared = json.loads((tmp_path / "said.json").read_text())["compared"]
    assert [one["what"] for one in compared] == [
        "data", "losses and evaluations", "weights", "predictions on test",
        "predictions on validation", "figures of validation", "figures of test",
    ]  # fmt: skip
    lines = Path(data).read_text(encoding="utf-8").splitlines()
    Path(data).write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    status, said = rerun(run)
    assert status == 1
    assert "not equal: other rows in train" in said


def test_a_run_of_every_recipe_can_be_repeated(
    run_recipe: Any, rerun: Any, tiny: Callable[..., Any], tiny_recipe: str, tmp_path: Path
) -> None:
    """Its config.yaml holds all that its command said."""
    settings = (*tiny(tiny_recipe, dropout=0.1), "--train.max-steps", "4")
    finished = run_recipe(tiny_recipe, *settings, "--output-dir", tmp_path)
    assert finished.status == 0, finished.err
    status, said = rerun(tmp_path / tiny_recipe / "a")
    assert status == 0, said


@pytest.mark.slow
def test_in_processes_of_their_own(reviews: Path, tmp_path: Path, repository: Path) -> None:
    """The run by two processes of torchrun: the command that rerun names is typed, and compared."""
    environment = os.environ | {
        "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(repository),
    }  # fmt: skip

    def call(*words: object, status: int = 0, **more: str) -> str:
        done = subprocess.run(
            [str(word) for word in words], cwd=tmp_path, env=environment | more,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        return " ".join((done.stdout + done.stderr).split())

    recipe = repository / "recipes" / "bert_sentiment.py"
    python, arguments = sys.executable, ("--dataset", reviews, *SMALL, "--output-dir")
    toolkit_command = (python, "-m", "toolkit.cli", "rerun")
    call(python, recipe, *arguments, "one")
    assert "equal to the last bit" in call(*toolkit_command, "one/bert_sentiment/a")

    torchrun = (python, "-m", "torch.distributed.run", "--nproc_per_node", "2")
    call(*torchrun, recipe, *arguments, "two")
    said = call(*toolkit_command, "two/bert_sentiment/a", status=2)
    start, _, rest = said.partition("ACCELERATE_USE_CPU=true torchrun ")
    assert start, said
    command, _, check = rest.partition(" and then compare: toolkit rerun ")
    call(python, "-m", "torch.distributed.run", *command.split())
    assert "equal to the last bit" in call(*toolkit_command, *check.split())
    said = call(*toolkit_command, "one/bert_sentiment/a", "--against", "two/bert_sentiment/a",
                status=1)  # fmt: skip
    assert "processes: 1 then, 2 now" in said
