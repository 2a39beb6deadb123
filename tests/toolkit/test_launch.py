"""A process that was started is never left behind by Ctrl-C."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolkit import launch

SLEEP = "import signal, sys, time; signal.signal(signal.SIGINT, signal.SIG_DFL); time.sleep(60)"


def test_a_process_that_ctrl_c_did_not_reach_is_interrupted_too() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen([sys.executable, "-c", SLEEP])
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            launch._wait_for(process)
        assert process.poll() == -signal.SIGINT
    finally:
        timer.cancel()
        process.kill()
        signal.signal(signal.SIGINT, before)


def test_the_status_of_a_process_is_told() -> None:
    assert launch._wait_for(subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"])) == 7


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")
def test_a_recipe_clears_away_nothing_that_it_inherited(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A session of onnxruntime that waits for its threads there would wait for ever."""

    class Held:
        def __init__(self) -> None:
            self.itself = self  # only the garbage collector finds it

        def __del__(self) -> None:
            (tmp_path / f"deleted by {os.getpid()}").touch()

    def recipe(main: Any, config: Any, file: str) -> None:
        (tmp_path / "ran").write_text(str(gc.collect()))

    monkeypatch.setattr(launch, "run_recipe", recipe)
    gc.disable()
    try:
        Held()
        module: Any = SimpleNamespace(main=None, Config=None)
        assert launch.start_recipe(module, tmp_path / "recipe.py", []) == 0
        assert [file.name for file in tmp_path.iterdir()] == ["ran"]
    finally:
        gc.enable()
        gc.collect()
    assert (tmp_path / f"deleted by {os.getpid()}").exists()
