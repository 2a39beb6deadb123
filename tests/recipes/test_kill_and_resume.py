"""A recipe killed at any moment and resumed ends in the bits of one that was left alone."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

Start = Callable[..., Any]
RECIPE = "bert_sentiment"


@pytest.fixture(scope="session")
def arguments(tiny_bert: Path, reviews: Path) -> tuple[object, ...]:
    """Two epochs of 13 steps of three passes, the last one uneven; dropout; best kept beside."""
    return (
        "--dataset", reviews, "--model", tiny_bert, "--train.epochs", "2",
        "--train.batch-size", "4", "--train.accumulation-steps", "3", "--train.save-every", "2",
        "--train.learning-rate", "0.005", "--train.log-every", "1", "--train.evaluate-every", "5",
    )  # fmt: skip


@pytest.fixture(scope="session")
def whole(
    start_process: Start, tmp_path_factory: pytest.TempPathFactory, arguments: tuple[object, ...]
) -> Path:
    """The run that nothing happens to."""
    root = tmp_path_factory.mktemp("whole")
    process = start_process(root / "log", RECIPE, *arguments, "--output-dir", root, "--run-id", "a")
    process.join(120)
    assert process.exitcode == 0, (root / "log").read_text(encoding="utf-8")
    return root / RECIPE / "a"


def log_of(run: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [{k: v for k, v in line.items() if k not in ("seconds", "joules")} for line in lines]


def steps_logged(run: Path) -> int:
    try:
        return (run / "metrics.jsonl").read_text(encoding="utf-8").count('"learning_rate"')
    except OSError:
        return 0


def kill_after(process: Any, run: Path, step: int, delay: float) -> None:
    """SIGKILL once a step is logged and so many seconds have passed."""
    deadline = time.monotonic() + 60
    while steps_logged(run) < step and process.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.002)
    time.sleep(delay)
    os.kill(process.pid, signal.SIGKILL)
    process.join(30)
    assert process.exitcode == -signal.SIGKILL


def assert_equal_runs(run: Path, whole: Path) -> None:
    ours, theirs = (load_file(r / "model" / "model.safetensors") for r in (run, whole))
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert value.equal(theirs[name]), name
    assert log_of(run) == log_of(whole)
    mine, other = (json.loads((r / "summary.json").read_text("utf-8")) for r in (run, whole))
    for part in ("model", "data", "validation", "test"):
        assert mine[part] == other[part]
    for part in ("best_step", "average", "padded_tokens", "flops", "padding"):
        assert mine["training"].get(part) == other["training"].get(part)
    files = {file.name for file in (whole / "predictions").iterdir()}
    assert "test.parquet" in files
    for file in files:
        assert (run / "predictions" / file).read_bytes() == (
            whole / "predictions" / file
        ).read_bytes()


def kill_and_resume(
    start_process: Start,
    root: Path,
    arguments: tuple[object, ...],
    moments: list[tuple[int, float]],
    recipe: str = RECIPE,
) -> Path:
    """Start, kill at the given moments (step, seconds after it), resume each time to the end."""
    run = root / recipe / "a"
    command: tuple[object, ...] = (*arguments, "--output-dir", root, "--run-id", "a")
    for step, delay in moments:
        process = start_process(root / "log", recipe, *command)
        kill_after(process, run, step, delay)
        assert not (run / "summary.json").exists()
        command = ("--resume", run)
    process = start_process(root / "log", recipe, *command)
    process.join(120)
    assert process.exitcode == 0, (root / "log").read_text(encoding="utf-8")
    return run


def test_killed_in_both_epochs_and_resumed_twice(
    start_process: Start, tmp_path: Path, whole: Path, arguments: tuple[object, ...]
) -> None:
    generator = random.Random(20)
    first, second = generator.randint(2, 9), generator.randint(14, 22)
    run = kill_and_resume(
        start_process, tmp_path, arguments, [(first, 0.01), (second, generator.random() / 50)]
    )
    assert_equal_runs(run, whole)
    assert "resuming" in (tmp_path / "log").read_text(encoding="utf-8")
    started = json.loads((run / "environment.json").read_text())["command"]
    assert "--resume" not in json.loads((run / "summary.json").read_text())["command"]
    assert json.loads((run / "summary.json").read_text())["command"] == started


def test_a_damaged_newest_checkpoint_costs_only_its_steps(
    start_process: Start, tmp_path: Path, whole: Path, arguments: tuple[object, ...]
) -> None:
    run = tmp_path / RECIPE / "a"
    keep = ("--train.keep-checkpoints", "2")
    process = start_process(
        tmp_path / "log", RECIPE, *arguments, *keep, "--output-dir", tmp_path, "--run-id", "a"
    )
    kill_after(process, run, 17, 0.0)
    steps = sorted(int(path.name[5:]) for path in (run / "checkpoints").glob("step-*"))
    newest = run / "checkpoints" / f"step-{steps[-1]}"
    weights = newest / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    resumed = start_process(tmp_path / "log", RECIPE, "--resume", run)
    resumed.join(120)
    said = (tmp_path / "log").read_text(encoding="utf-8")
    assert resumed.exitcode == 0, said
    assert f"skipping checkpoint step-{steps[-1]}: model.safetensors has 100 bytes" in said
    assert_equal_runs(run, whole)


def start_and_wait(start_process: Start, root: Path, step: int, *arguments: object) -> Any:
    """A run in its ``step``th step, or a little later."""
    process = start_process(root / "log", RECIPE, *arguments, "--output-dir", root, "--run-id", "a")
    while steps_logged(root / RECIPE / "a") < step and process.is_alive():
        time.sleep(0.002)
    return process


def resume_to_the_end(start_process: Start, root: Path) -> Path:
    run = root / RECIPE / "a"
    resumed = start_process(root / "log", RECIPE, "--resume", run)
    resumed.join(120)
    assert resumed.exitcode == 0, (root / "log").read_text(encoding="utf-8")
    return run


def test_interrupted_by_ctrl_c_it_saves_the_step_and_can_be_resumed(
    start_process: Start, tmp_path: Path, whole: Path, arguments: tuple[object, ...]
) -> None:
    process = start_and_wait(start_process, tmp_path, 7, *arguments, "--train.save-every", "100")
    os.kill(process.pid, signal.SIGINT)
    process.join(60)
    said = (tmp_path / "log").read_text(encoding="utf-8")
    assert process.exitcode == 130, said
    assert "Traceback" not in said
    run = tmp_path / RECIPE / "a"
    last = log_of(run)[-1]["step"]
    assert f"interrupted after step {last}, which is saved. Go on with: python" in said
    assert said.strip().endswith(f"recipes/bert_sentiment.py --resume {run}")
    resume_to_the_end(start_process, tmp_path)
    assert f"resuming {run} after step {last}\n" in (tmp_path / "log").read_text("utf-8")
    assert_equal_runs(run, whole)


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_interrupted_at_random_moments(
    start_process: Start, tmp_path: Path, whole: Path, arguments: tuple[object, ...], times: int
) -> None:
    """Also before the first step, in evaluations and saves, and after the last step."""
    generator = random.Random(times)
    for number in range(times):
        root = tmp_path / str(number)
        root.mkdir()
        run = root / RECIPE / "a"
        process = start_process(
            root / "log", RECIPE, *arguments, "--output-dir", root, "--run-id", "a"
        )
        if number > 0:  # the first one is still reading its data
            while not (run / "config.yaml").exists() and process.is_alive():
                time.sleep(0.002)
            time.sleep(generator.random() * 2)
        else:
            while not (root / "log").exists():
                time.sleep(0.002)
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        process.join(60)
        said = (root / "log").read_text(encoding="utf-8")
        assert "Traceback" not in said, said
        assert process.exitcode in (0, 130), said
        assert (process.exitcode == 0) == (run / "summary.json").exists()
        if not (run / "config.yaml").exists():  # nothing has begun
            assert not (run / "checkpoints").exists()
            continue
        if process.exitcode == 130:
            resume_to_the_end(start_process, root)
        assert_equal_runs(run, whole)


def test_a_full_disk_ends_the_run_and_costs_only_the_steps_since_the_last_checkpoint(
    start_process: Start, tmp_path: Path, whole: Path, arguments: tuple[object, ...]
) -> None:
    """No file may be larger than 20 kB from step 9 on: neither weights nor optimizer."""
    arguments = (*arguments, "--train.wait-for-space", "0")
    process = start_and_wait(start_process, tmp_path, 9, *arguments)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    process.join(60)
    said = (tmp_path / "log").read_text(encoding="utf-8")
    assert process.exitcode == 2, said
    assert "Traceback" not in said
    problem = re.search(r"error: checkpoint step-(\d+) could not be saved in (\S+): (.*)", said)
    assert problem is not None, said
    assert "File too large (os error 27)" in problem[3]
    assert re.search(r"It takes \d\.\d MiB, and [\d,.]+ [GM]iB are free there", problem[3])
    run = tmp_path / RECIPE / "a"
    assert f"step-{int(problem[1]) - 2} is intact" in problem[3]
    assert not list((run / "checkpoints").glob(".*"))
    assert not (run / "checkpoints" / f"step-{problem[1]}").exists()
    assert_equal_runs(resume_to_the_end(start_process, tmp_path), whole)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 260 kB: there is room for the first checkpoints and not for more."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=260k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(["mount", *options], capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if done.returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_file_system_without_space(
    start_process: Start,
    tmp_path: Path,
    small_disk: Path,
    whole: Path,
    arguments: tuple[object, ...],
) -> None:
    """What is checked before anything is written; and with room elsewhere the run goes on."""
    full = ("--output-dir", small_disk, "--run-id", "a", "--train.wait-for-space", "0")
    alone = start_process(tmp_path / "log", RECIPE, *arguments, *full)
    alone.join(60)
    said = (tmp_path / "log").read_text(encoding="utf-8")
    assert alone.exitcode == 2, said
    assert "Traceback" not in said
    assert re.search(r"the disk is too full\. It takes 0\.\d MiB, and 0\.\d MiB are free", said)
    run = small_disk / RECIPE / "a"
    assert log_of(run)[-1]["step"] > 0
    assert not list((run / "checkpoints").glob(".*"))
    bigger = tmp_path / "bigger"
    shutil.copytree(run, bigger / RECIPE / "a")  # what a person does who needs room
    resume_to_the_end(start_process, bigger)
    assert_equal_runs(bigger / RECIPE / "a", whole)


def test_room_that_is_made_in_time_costs_nothing(
    start_process: Start, tmp_path: Path, whole: Path, arguments: tuple[object, ...]
) -> None:
    process = start_and_wait(start_process, tmp_path, 9, *arguments)
    infinite = resource.RLIM_INFINITY
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (20_000, infinite))
    log, deadline = tmp_path / "log", time.monotonic() + 60
    while "Training waits up to 600 seconds" not in log.read_text(encoding="utf-8"):
        assert process.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (infinite, infinite))
    process.join(60)
    assert process.exitcode == 0, log.read_text(encoding="utf-8")
    assert_equal_runs(tmp_path / RECIPE / "a", whole)


def test_checkpoints_go_to_the_other_disk_and_are_found_there(
    start_process: Start, tmp_path: Path, whole: Path, arguments: tuple[object, ...]
) -> None:
    """The run directory's own folder of checkpoints is a file: nothing can be written in it."""
    other = tmp_path / "other"
    arguments = (*arguments, "--train.fallback-dir", other, "--train.save-every", "4")
    process = start_process(
        tmp_path / "log", RECIPE, *arguments, "--output-dir", tmp_path, "--run-id", "a"
    )
    run = tmp_path / RECIPE / "a"
    while not (run / "config.yaml").exists() and process.is_alive():
        time.sleep(0.001)
    (run / "checkpoints").touch(exist_ok=False)  # some steps before the first save
    kill_after(process, run, 15, 0.0)
    assert list(other.glob(f"{RECIPE}/a-*/checkpoints/step-*"))
    resume_to_the_end(start_process, tmp_path)
    said = (tmp_path / "log").read_text("utf-8")
    assert int(re.findall(r"after step (\d+)", said)[-1]) >= 10
    assert not list(other.glob(f"{RECIPE}/a-*/checkpoints"))
    assert_equal_runs(run, whole)


def test_a_killed_classic_baseline_resumes_too(
    start_process: Start, tmp_path: Path, runs: dict[str, Path]
) -> None:
    """Everything but the summary is there, as after a kill at the last moment."""
    run = tmp_path / "tfidf"
    shutil.copytree(runs["tfidf"], run)
    (run / "summary.json").unlink()
    process = start_process(tmp_path / "log", "tfidf_sentiment", "--resume", run)
    process.join(120)
    assert process.exitcode == 0, (tmp_path / "log").read_text(encoding="utf-8")
    assert log_of(run) == log_of(runs["tfidf"])
    ours, theirs = (json.loads((r / "summary.json").read_text()) for r in (run, runs["tfidf"]))
    assert ours["test"] == theirs["test"]


@pytest.mark.slow
def test_killed_lora_resumes_to_the_same_adapter(
    start_process: Start, tmp_path: Path, arguments: tuple[object, ...]
) -> None:
    lora = (*arguments, "--method", "lora", "--implementation", "hf")
    untouched = start_process(
        tmp_path / "log", RECIPE, *lora, "--output-dir", tmp_path / "whole", "--run-id", "a"
    )
    run = kill_and_resume(start_process, tmp_path, lora, [(15, 0.0)])
    untouched.join(60)
    whole = tmp_path / "whole" / RECIPE / "a"
    assert_equal_runs(run, whole)
    ours, theirs = (load_file(r / "adapter" / "adapter_model.safetensors") for r in (run, whole))
    assert all(value.equal(theirs[name]) for name, value in ours.items())


EXTRA = {
    "translation": ("--average", "3"),
    "cifar10": ("--augmentation.mixup", "0.8", "--augmentation.cutmix", "1"),
    "image_classification": (  # with batch norms, and an average of what they measure
        "--model", "resnet", "--resnet.widths", "[8, 8]", "--resnet.depths", "[1, 1]",
        "--train.ema", "0.9",
    ),
}  # fmt: skip
"""What a resumed run could lose besides weights and dropout."""


def test_every_recipe_ends_in_the_same_bits(
    start_process: Start, tiny: Callable[..., Any], tiny_recipe: str, tmp_path: Path
) -> None:
    arguments = (
        *tiny(tiny_recipe, dropout=0.1), *EXTRA.get(tiny_recipe, ()), "--train.batch-size", "16",
        "--train.max-steps", "24", "--train.save-every", "2", "--train.evaluate-every", "8",
    )  # fmt: skip
    untouched = start_process(
        tmp_path / "log", tiny_recipe, *arguments, "--output-dir", tmp_path / "whole"
    )
    run = kill_and_resume(start_process, tmp_path, arguments, [(11, 0.0)], tiny_recipe)
    untouched.join(60)
    assert untouched.exitcode == 0
    said = (tmp_path / "log").read_text(encoding="utf-8")
    assert int(re.findall(r"after step (\d+)", said)[-1]) >= 8
    whole = tmp_path / "whole" / tiny_recipe / "a"
    assert len([line for line in log_of(whole) if "loss" in line]) == 24
    assert_equal_runs(run, whole)


@pytest.mark.parametrize(
    "times",
    [
        4,
        pytest.param(20, marks=pytest.mark.slow),
        pytest.param(200, marks=pytest.mark.slow),
    ],
)
def test_killed_at_random_moments(
    start_process: Start,
    tmp_path: Path,
    whole: Path,
    arguments: tuple[object, ...],
    times: int,
) -> None:
    """Anywhere in two epochs: while a step is computed, evaluated, or saved (every second is)."""
    generator = random.Random(times)
    for number in range(times):
        root = tmp_path / str(number)
        root.mkdir()
        moment = (generator.randint(1, 24), generator.random() / 20)
        run = kill_and_resume(start_process, root, arguments, [moment])
        assert_equal_runs(run, whole)
        shutil.rmtree(root)
