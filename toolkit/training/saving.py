"""Saving a checkpoint when the disk is full: what is trained is in memory, and need not be lost."""

from __future__ import annotations

import time
from typing import Any

from toolkit.console import notify
from toolkit.errors import Interrupted
from toolkit.processes import decided_by_main
from toolkit.training.checkpoint import CheckpointStore, SaveError
from toolkit.training.interruption import Interruption

RETRY = 10.0
"""Seconds between two attempts."""


def save_patiently(
    store: CheckpointStore,
    step: int,
    state: dict[str, Any],
    best_step: int | None,
    *,
    wait: float,
    interruption: Interruption,
) -> None:
    """`CheckpointStore.save`, again and again until there is room; collective.

    Args:
        wait: seconds from the first attempt after which it is given up.
        interruption: ends the wait: a person who presses Ctrl-C does not want it.

    Raises:
        SaveError: there was no room in that time. Names the checkpoint that a resumed run goes on
            from.
        Interrupted: likewise, in a process whose wait was ended by a signal.
    """
    deadline, told = time.monotonic() + wait, False
    while True:
        try:
            return store.save(step, state, best_step)
        except SaveError as error:
            problem = str(error)
        left = deadline - time.monotonic()
        go_on = left > 0 and not interruption.requested
        if not decided_by_main(store.accelerator, go_on):
            said = f"{problem}. {_what_is_left(store)}"
            if interruption.signal is not None:
                raise Interrupted(said, 128 + interruption.signal)
            raise SaveError(said)
        if not told:
            notify(
                f"warning: {problem}. Training waits up to {left:,.0f} seconds for room, and tries "
                f"every {RETRY:.0f}; Ctrl-C ends it"
            )
            told = True
        _sleep(min(RETRY, max(left, 0.0)), interruption)


def _sleep(seconds: float, interruption: Interruption) -> None:
    end = time.monotonic() + seconds
    while not interruption.requested and (left := end - time.monotonic()) > 0:
        time.sleep(min(0.2, left))


def _what_is_left(store: CheckpointStore) -> str:
    newest = next((s for s in reversed(store.steps()) if store.problem(s) is None), None)
    if newest is None:
        return "There is no earlier checkpoint: make room and start again"
    return (
        f"Checkpoint step-{newest} is intact: make room and go on from there with --resume, as "
        "printed above"
    )
