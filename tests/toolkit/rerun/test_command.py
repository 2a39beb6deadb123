"""`toolkit rerun`: what it starts, what it says before and after, and what it refuses."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import toolkit.cli
from toolkit.environment import describe_environment

from .conftest import EVENTS, SUMMARY

Write = Callable[..., Path]
# A recipe without training: it takes what another run left, but for its losses.
RECIPE = '''
import json, shutil, sys
from dataclasses import dataclass
from pathlib import Path
import torch
from toolkit.config import RunConfig
from toolkit.config_files import save_config
from toolkit.errors import UserError

@dataclass
class Config(RunConfig):
    """A recipe that is done at once."""

    dataset: str = "x.csv"
    """A file."""
    outcome: str = "same"
    """same, other or fails."""

def main(invocation):
    config = invocation.config
    folder = Path(config.output_dir) / "again" / config.run_id
    print("a table")
    if config.outcome == "fails":
        raise UserError("the data are gone")
    source = Path(__file__).parents[1] / "runs" / "again" / "a"
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, folder)
    then = json.loads((source / "environment.json").read_text())
    then["threads"] = torch.get_num_threads()
    (folder / "environment.json").write_text(json.dumps(then))
    save_config(config, folder / "config.yaml")
    (folder / "argv.json").write_text(json.dumps(sys.argv[1:]))
    if config.outcome == "other":
        log = (folder / "metrics.jsonl").read_text()
        (folder / "metrics.jsonl").write_text(log.replace("0.75", "0.8125"))
'''


@pytest.fixture(autouse=True)
def laboratory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A recipe of the user's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "again.py").write_text(RECIPE)
    sys.modules.pop("recipe_again", None)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def rerun(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Status, stdout and stderr, those of the recipe's process among them."""

    def run(*argv: object) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            toolkit.cli.main(["rerun", *map(str, argv)])
        captured = capfd.readouterr()
        return int(ended.value.code or 0), captured.out, " ".join(captured.err.split())

    return run


def now() -> dict[str, Any]:
    return json.loads(json.dumps(describe_environment()))


def test_a_run_is_repeated_with_its_settings_beside_it(write_run: Write, rerun: Any) -> None:
    write_run("a", environment=now(), config="seed: 7\ntrain: {epochs: 5}\nrun_id: a\n")
    status, out, err = rerun("runs/again/a")
    assert status == 0, err
    new = Path("runs/again/a-rerun")
    settings = yaml.safe_load((new / "config.yaml").read_text())
    assert (settings["seed"], settings["train"]["epochs"], settings["run_id"]) == (7, 5, "a-rerun")
    assert "code, versions and hardware are those of then" in err
    assert "runs/again/a and runs/again/a-rerun: equal to the last bit" in out
    assert out.count("equal to the last bit") == 7
    command = (
        "accelerate launch recipes/again.py --config runs/again/a/config.yaml --output-dir runs "
        "--run-id a-rerun"
    )
    assert f"repeating runs/again/a: {command}" in err
    assert json.loads((new / "argv.json").read_text()) == shlex.split(command)[3:]
    assert rerun("runs/again/a")[0] == 0
    assert Path("runs/again/a-rerun-2").is_dir()


def test_what_differs_is_said_before_and_after(write_run: Write, rerun: Any) -> None:
    then = now() | {"processor": "Z80", "code": "0" * 64}
    then["packages"] = then["packages"] | {"torch": "1.0"}
    write_run("a", environment=then, config="outcome: other\n")
    status, out, err = rerun(
        "runs/again/a", "--output-dir", "elsewhere", "--run-id", "b", "--json", "said.json"
    )
    assert status == 1
    assert "not as it was then:" in err
    assert "processor: Z80 then" in err
    assert "torch: 1.0 then, " in err
    assert "code of the project (fingerprint): 000000000000 then, " in err
    assert "largest difference 0.0625: step 1, loss: 0.75" in " ".join(out.split())
    assert "runs/again/a and elsewhere/again/b: the results differ" in out
    said = json.loads(Path("said.json").read_text())
    assert said["equal"] is False
    assert (said["run"], said["rerun"]) == ("runs/again/a", "elsewhere/again/b")
    assert {one["what"]: one["largest_difference"] for one in said["compared"]} == {
        "data": None, "losses and evaluations": 0.0625, "weights": None,
        "predictions on test": None, "figures of validation": None, "figures of test": None,
    }  # fmt: skip


def test_json_alone_on_stdout(
    write_run: Write, rerun: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run("a", environment=now())
    # pytest's own stdout is a file of its own; a process has the descriptor 1.
    monkeypatch.setattr(sys, "stdout", open(1, "w", buffering=1, closefd=False))  # noqa: SIM115
    status, out, err = rerun("runs/again/a", "--json", "-")
    assert status == 0
    assert json.loads(out)["equal"] is True
    assert "a table" in err  # of the recipe


def test_nothing_is_pushed_or_tracked_again(write_run: Write, rerun: Any) -> None:
    write_run(
        "a", environment=now(), config="push_to_hub: someone/something\ntracker: wandb\nseed: 3\n"
    )
    assert rerun("runs/again/a")[0] == 0
    settings = yaml.safe_load(Path("runs/again/a-rerun/config.yaml").read_text())
    assert (settings["push_to_hub"], settings["tracker"], settings["seed"]) == (None, None, 3)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_it_computes_with_as_many_threads_as_then(write_run: Write, rerun: Any) -> None:
    torch.set_num_threads(1)
    write_run("a", environment=now() | {"threads": 2})
    status, _, err = rerun("runs/again/a")
    assert status == 0
    assert "threads" not in err
    recorded = json.loads(Path("runs/again/a-rerun/environment.json").read_text())
    assert recorded["threads"] == 2


def test_the_launchers_precision_is_given_again(write_run: Write, rerun: Any) -> None:
    environment = SUMMARY["environment"] | {"precision": "bf16"}
    write_run("a", environment=now(), summary={"environment": environment})
    assert rerun("runs/again/a")[0] == 0
    settings = yaml.safe_load(Path("runs/again/a-rerun/config.yaml").read_text())
    assert settings["train"]["mixed_precision"] == "bf16"


def test_remarks_of_what_cannot_be_equal(write_run: Write, rerun: Any) -> None:
    continued = {"continued_with": [{"code": "x"}, {"code": "y", "packages.torch": "1"}]}
    write_run(
        "a", environment=now() | continued, config="train: {max_seconds: 3}\ndataset: x.csv\n"
    )
    Path("x.csv").write_text("a")
    written = Path("runs/again/a/config.yaml").stat().st_mtime + 60
    os.utime("x.csv", (written, written))
    status, _, err = rerun("runs/again/a")
    assert status == 0
    assert "--train.max_seconds 3: how many steps that is depends on the machine" in err
    assert "went on with other code, packages.torch than it began with" in err
    assert "x.csv was written after it began: the data may be others" in err


def test_two_runs_that_are_there_are_compared(write_run: Write, rerun: Any) -> None:
    write_run("a", environment={"threads": 1})
    events = [event | {"loss": 1.0} if "loss" in event else event for event in EVENTS]
    write_run("b", environment={"threads": 2}, events=events)
    status, out, err = rerun("runs/again/a", "--against", "runs/again/b")
    assert status == 1
    assert "threads: 1 then, 2 now" in err
    assert "largest difference 0.5: step 2, loss" in " ".join(out.split())
    assert rerun("runs/again/a", "--against", "runs/again/a")[0] == 0
    status, _, err = rerun("runs/again/a", "--against", "runs/again/b", "--run-id", "c")
    assert status == 2
    assert "--against runs nothing" in err


@pytest.mark.parametrize(
    ("device", "kind", "launcher"),
    [
        ("cpu", "MULTI_CPU", "ACCELERATE_USE_CPU=true torchrun --nproc_per_node 4"),
        ("cuda", "MULTI_GPU", "torchrun --nproc_per_node 4"),
        (
            "cuda", "FSDP",
            "accelerate launch --config_file YOUR_SETTINGS.yaml --num_processes 4",
        ),
    ],
)  # fmt: skip
def test_several_processes_are_left_to_their_launcher(
    write_run: Write, rerun: Any, device: str, kind: str, launcher: str
) -> None:
    environment = {"processes": 4, "precision": "fp32", "device": device}
    write_run(
        "a", summary={"environment": environment},
        environment={"accelerate": {"distributed_type": kind}},
    )  # fmt: skip
    status, _, err = rerun("runs/again/a")
    assert status == 2
    assert (
        f"by hand: {launcher} recipes/again.py --config runs/again/a/config.yaml --output-dir runs "
        "--run-id a-rerun and then compare: toolkit rerun runs/again/a --against "
        "runs/again/a-rerun"
    ) in err
    assert not Path("runs/again/a-rerun").exists()


def test_mistakes_are_told_in_one_line(write_run: Write, rerun: Any) -> None:
    run = write_run("a", environment=now())

    def refused(*argv: object) -> str:
        status, _, err = rerun(*argv)
        assert status == 2
        assert err.count("error:") == 1
        assert "Traceback" not in err
        return str(err)

    assert "not a run directory (it has no config.yaml)" in refused("missing")
    assert "runs/again/a exists already" in refused(run, "--run-id", "a")
    interrupted = write_run("i")
    (interrupted / "summary.json").unlink()
    assert ("Finish it first: accelerate launch recipes/again.py --resume runs/again/i") in refused(
        "runs/again/i"
    )
    (run / "config.yaml").write_text("sead: 1\n")
    assert "unknown key 'sead'. Did you mean 'seed'?" in refused(run)
    (run / "config.yaml").write_text("seed: 1\n")
    (run / "environment.json").write_text('{"recipe": "nothing"}')
    assert "no such recipe: nothing.py" in refused(run)
    (run / "environment.json").unlink()
    assert "environment.json is missing or damaged" in refused(run)


def test_a_repetition_that_fails_says_where_it_is(write_run: Write, rerun: Any) -> None:
    write_run("a", environment=now(), config="outcome: fails\n")
    status, _, err = rerun("runs/again/a")
    assert status == 2
    assert "error: the data are gone" in err
    assert "the repetition ended with exit code 2 before it was complete" in err
