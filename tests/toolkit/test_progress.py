"""Bars on a terminal, plain lines in a log, silence in the other processes."""

from __future__ import annotations

import pytest
from rich.console import Console

import toolkit.console
import toolkit.progress
from toolkit.progress import progress_bar


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(toolkit.progress.time, "monotonic", found.monotonic)
    return found


def test_plain_lines_come_every_few_seconds_and_at_the_end(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bar("training", 100) as display:
        for _ in range(100):
            clock.now += 1
            display.advance(1, "loss 0.5")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[0] == "training 10/100  loss 0.5  0:10 spent, 1:30 left"
    assert lines[-1] == "training 100/100  loss 0.5  1:40 spent, 0:00 left"


def test_a_resumed_run_is_timed_by_its_own_steps(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bar("training", 3700, done=90) as display:
        clock.now += 10
        display.advance(10)
    assert capsys.readouterr().err == "training 100/3700    0:10 spent, 1:00:00 left\n"


def test_other_processes_are_silent(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    with progress_bar("training", 1) as display:
        clock.now += 60
        display.advance()
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    terminal = Console(stderr=True, highlight=False)
    for module in (toolkit.progress, toolkit.console):
        monkeypatch.setattr(module, "remarks", terminal)
    with progress_bar("training", 4) as display:
        display.advance(3, "loss 0.1234")
        toolkit.console.notify("half way")
    shown = capsys.readouterr().err
    assert "half way\n" in shown.replace("\r", "")  # a line of its own, not the bar's
    assert "3/4" in shown
    assert "loss 0.1234" in shown
    assert "ETA" in shown
