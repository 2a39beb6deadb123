"""Versions, hardware and the command as they are."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import pytest
import torch
import transformers

import toolkit.environment
import toolkit.git_state
from toolkit.environment import (
    code_fingerprint,
    describe_environment,
    peak_memory_bytes,
)
from toolkit.git_state import git_state


def test_versions_are_those_of_this_process() -> None:
    described = describe_environment()
    json.dumps(described, allow_nan=False)
    assert described["python"] == platform.python_version()
    assert described["packages"]["torch"] == torch.__version__.split("+")[0]
    assert described["packages"]["transformers"] == transformers.__version__
    assert described["threads"] == torch.get_num_threads()
    assert described["gpus"] == [] or torch.cuda.is_available()
    assert described["processor"]


def test_git_state_follows_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    monkeypatch.setattr(toolkit.git_state, "__file__", str(tmp_path / "toolkit" / "x.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_state() is None
    git("init", "-q")
    for name in ("toolkit/code.py", "results/demo/report.md", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("commit", "-qm", "first")
    commit = git("rev-parse", "HEAD")
    assert git_state() == {"commit": commit, "dirty": False}
    (tmp_path / "results.txt").write_text("untracked files are no change of the code")
    assert git_state() == {"commit": commit, "dirty": False}
    for name in ("results/demo/report.md", "README.md"):  # reports and notes are no code
        (tmp_path / name).write_text("2")
    assert git_state() == {"commit": commit, "dirty": False}
    (tmp_path / "toolkit/code.py").write_text("2")
    assert git_state() == {"commit": commit, "dirty": True}


def test_peak_memory_is_the_kernels_own_count() -> None:
    status = Path("/proc/self/status")
    if torch.cuda.is_available() or not status.is_file():
        pytest.skip("needs the count of Linux, and no GPU")
    lines = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
    kernel = int(lines[0].split()[1]) * 1024
    assert peak_memory_bytes() == pytest.approx(kernel, rel=0.05)


def test_the_fingerprint_follows_the_code_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolkit.environment, "__file__", str(tmp_path / "toolkit" / "x.py"))
    for name in ("toolkit/x.py", "recipes/y.py", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a = 1")
    before = code_fingerprint()
    (tmp_path / "README.md").write_text("other words")
    assert code_fingerprint() == before
    (tmp_path / "recipes" / "y.py").write_text("a = 2")
    assert code_fingerprint() != before
