"""The command as one would type it, from the launcher's own words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.command_line import command_line, launcher_words


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "python recipes/x.py --title 'a b'"),
        ({"WORLD_SIZE": "2"}, "torchrun --nproc_per_node 2 recipes/x.py --title 'a b'"),
        ({"ACCELERATE_MIXED_PRECISION": "no"}, "accelerate launch recipes/x.py --title 'a b'"),
    ],
)
def test_the_command_as_one_would_type_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, environment: dict[str, str], expected: str
) -> None:
    monkeypatch.setattr("toolkit.command_line._launcher", lambda: None)
    monkeypatch.delenv("ACCELERATE_MIXED_PRECISION", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    script = str(tmp_path / "recipes" / "x.py")
    monkeypatch.setattr("sys.argv", [script, "--title", "a b"])
    assert command_line() == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            ["/v/bin/python3", "/v/bin/accelerate", "launch", "-q", "--config_file", "a b.yaml"],
            ["accelerate", "launch", "-q", "--config_file", "a b.yaml"],
        ),
        (["python", "-m", "accelerate.commands.launch", "-q"], ["accelerate", "launch", "-q"]),
        (["python", "/v/bin/torchrun", "--nnodes", "2"], ["torchrun", "--nnodes", "2"]),
        (["python", "-m", "torch.distributed.run"], ["torchrun"]),
        (["bash", "start.sh"], None),
    ],
)
def test_a_launchers_own_words_are_kept(
    tmp_path: Path, command: list[str], expected: list[str] | None
) -> None:
    script = tmp_path / "recipes" / "x.py"
    words = [*command, "recipes/x.py", "--title", "b"]
    assert launcher_words(words, str(script), str(tmp_path)) == expected
    assert launcher_words(words, str(script), str(tmp_path / "other")) is None


def test_a_launched_script_sees_its_launcher(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(
        "import os; os.environ['WORLD_SIZE'] = '1'\n"
        "from toolkit.command_line import command_line; print(command_line())\n"
    )
    # Stands for torchrun, whose imports take seconds: a program of that name that starts a script.
    (tmp_path / "torchrun").write_text(
        "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[2:]], check=True)\n"
    )
    ran = subprocess.run(
        [sys.executable, "torchrun", "--standalone", "x.py", "--title", "a b"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout == "torchrun --standalone x.py --title 'a b'\n"
