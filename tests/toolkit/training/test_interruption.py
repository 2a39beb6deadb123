"""One Ctrl-C asks for the end, another one is the end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from toolkit.training import interruption
from toolkit.training.interruption import Interruption, raise_once


@pytest.fixture(autouse=True)
def ctrl_c_interrupts() -> Iterator[None]:
    """Also where the tests run in the background of a shell, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def send(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(0.01)


def test_the_first_is_noted_and_told(capfd: pytest.CaptureFixture[str]) -> None:
    with Interruption() as asked:
        assert not asked.requested
        send(signal.SIGINT)
        assert asked.requested
        assert asked.signal == signal.SIGINT
    said = capfd.readouterr().err
    assert said.count("finishing this step") == 1
    assert "Ctrl-C again, after a second, stops at once" in said


def test_what_a_launcher_passes_on_is_the_same_one(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with Interruption() as asked:
        send(signal.SIGINT)
        send(signal.SIGINT)
        assert asked.requested
        monkeypatch.setattr(interruption, "SAME_SIGNAL", 0.0)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
    assert capfd.readouterr().err.count("finishing this step") == 1


def test_outside_of_training_too_the_same_one_interrupts_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raise_once()
    with pytest.raises(KeyboardInterrupt):
        send(signal.SIGINT)
    send(signal.SIGINT)  # nothing happens
    with Interruption() as asked:
        send(signal.SIGINT)
        assert asked.requested
    monkeypatch.setattr(interruption, "SAME_SIGNAL", 0.0)
    with pytest.raises(KeyboardInterrupt):
        send(signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signals_of_schedulers(number: signal.Signals) -> None:
    with Interruption() as asked:
        send(number)
        assert asked.signal == number


def test_torchruns_sigterm_ends_a_process_that_waits_for_a_failed_one() -> None:
    with Interruption(alone=False):
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) != signal.default_int_handler


def test_afterwards_signals_do_what_they_did_before() -> None:
    with Interruption():
        pass
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    with pytest.raises(KeyboardInterrupt):
        send(signal.SIGINT)


def test_what_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interruption() as asked:
        send(signal.SIGINT)
        assert not asked.requested


def test_in_another_thread_nothing_is_taken() -> None:
    seen = []

    def work() -> None:
        with Interruption():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_a_launcher_that_has_died_is_a_request_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """accelerate's dies of SIGTERM without a word to what it has started."""
    monkeypatch.setattr(interruption, "_accelerate_launch", os.getppid)
    with Interruption() as asked:
        assert not asked.requested
        monkeypatch.setattr(os, "getppid", lambda: 1)
        assert asked.requested
        assert asked.signal == signal.SIGTERM


def test_any_other_parent_may_end() -> None:
    """A shell that one has logged out of."""
    assert interruption._accelerate_launch() is None
