"""Ctrl-C, or a scheduler's signal, while a model trains: finish the step, save, then end.

A second one stops at once. Processes that train together end after the same step: whether one of
them was interrupted is part of what they count together at the beginning of every step
(`toolkit.training.training_steps`).
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from toolkit.console import is_main_process

# Launchers pass on a Ctrl-C that the terminal has sent to their processes as well. Seconds in
# which it is still the same one.
SAME_SIGNAL = 1.0


def raise_once() -> None:
    """Let Ctrl-C raise KeyboardInterrupt as ever, but the same one only once.

    Else what a launcher passes on would interrupt the clearing up after the terminal's. Nothing
    where signals are taken otherwise, or ignored, as by ``nohup``.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        return
    last = -math.inf

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last
        before, last = last, time.monotonic()
        if last - before > SAME_SIGNAL:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)


class Interruption:
    """Takes signals while it is entered as a context; elsewhere they do what they always did.

    SIGINT is Ctrl-C. SIGUSR1 is what `sbatch --signal=USR1@120` sends before the time is up, to
    every process. SIGTERM (`docker stop`, a scheduler that wants the machine) is taken only by a
    process that trains alone: torchrun sends it to those that wait for one that has failed.

    Args:
        alone: the run has one process.
    """

    def __init__(self, alone: bool = True) -> None:
        self.signal: signal.Signals | None = None
        self._taken = [signal.SIGINT]
        if hasattr(signal, "SIGUSR1"):  # not on Windows
            self._taken.append(signal.SIGUSR1)
        if alone:
            self._taken.append(signal.SIGTERM)
        self._at = 0.0
        self._launcher = _accelerate_launch()
        self._before: dict[signal.Signals, Any] = {}

    @property
    def requested(self) -> bool:
        """This process was asked to end, or `accelerate launch`, which has started it, has ended.

        That dies of a signal and passes none on; its processes would train on with nobody there.
        """
        if self.signal is None and self._launcher is not None and os.getppid() != self._launcher:
            self.signal = signal.SIGTERM
        return self.signal is not None

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():  # Python allows no other
            for number in self._taken:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup wants it
                    self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _take(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.signal is None:
            self.signal, self._at = signal.Signals(number), now
            if is_main_process():  # print would wait for what this handler has interrupted
                os.write(2, _SAID)
        elif now - self._at > SAME_SIGNAL:
            raise KeyboardInterrupt


def _accelerate_launch() -> int | None:
    """The process that has started this one, if it is accelerate's launcher (Linux)."""
    parent = os.getppid()
    try:
        words = Path(f"/proc/{parent}/cmdline").read_bytes()
    except OSError:
        return None
    return parent if b"accelerate" in words and b"launch" in words else None


_SAID = (
    b"\nfinishing this step (and an evaluation that has begun), then saving. "
    b"Ctrl-C again, after a second, stops at once.\n"
)
