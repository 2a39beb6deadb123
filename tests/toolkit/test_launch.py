"""A process that was started is never left behind by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from toolkit import launch

SLEEP = "import signal, sys, time; signal.signal(signal.SIGINT, signal.SIG_DFL); time.sleep(60)"


def test_a_process_that_ctrl_c_did_not_reach_is_interrupted_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "_GRACE", 0.1)
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
