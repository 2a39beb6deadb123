"""What became of every run of an experiment."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from toolkit.experiment.cells import CellRun, Experiment, short_path

State = Literal["run", "reused", "resumed", "failed", "interrupted", "not run", "absent", "damaged"]
DONE = ("run", "reused", "resumed")


@dataclass(frozen=True)
class Outcome:
    """One run and its state; in a plan, the state that is expected.

    Args:
        status: exit status of a process that failed (negative: the signal that ended it).
        seconds: wall time of the process; in a plan, the estimate. None: none was started, or
            nothing is known.
        folder: run directory; None where there is none.
        why: the reason for the state, where there is one to tell: why a run is done again, or why
            one is no use.
    """

    run: CellRun
    state: State
    status: int | None = None
    seconds: float | None = None
    folder: Path | None = None
    why: str | None = None

    @property
    def done(self) -> bool:
        """There is a complete run."""
        return self.state in DONE

    @property
    def state_in_words(self) -> str:
        """``reused``, or ``failed with status 2``."""
        if self.state == "absent":
            return "has no complete run"
        if self.state == "damaged":
            reason = "" if self.why is None else f": {self.why.rstrip('.')}"
            return f"has a run that cannot be compared{reason}"
        return self.state if self.status is None else f"failed with {status_in_words(self.status)}"


@dataclass
class Result:
    """An experiment with its outcomes so far, and its report or why there is none."""

    experiment: Experiment
    outcomes: list[Outcome] = field(default_factory=list)
    report: Path | None = None
    no_report: str | None = None

    def complete(self, cell: str) -> list[Outcome]:
        """The runs of a cell that are there, by seed."""
        return [outcome for outcome in self.outcomes if outcome.run.cell == cell and outcome.done]

    def missing(self) -> list[str]:
        """Sentences for a report: which runs are not in it and why, and what that means."""
        sentences = []
        for cell in self.experiment.cells:
            own = [outcome for outcome in self.outcomes if outcome.run.cell == cell.name]
            failed = [
                outcome for outcome in own if outcome.state in ("failed", "absent", "damaged")
            ]
            left, total = len(self.complete(cell.name)), len(cell.runs)
            for outcome in failed:
                seed = f", seed {outcome.run.config.seed}," if total > 1 else ""
                sentences.append(
                    f"{cell.title}{seed} {outcome.state_in_words}. The command that repeats it: "
                    f"{outcome.run.command}"
                )
            if failed and left:
                sentences.append(f"{cell.title} is compared with {left} of its {total} seeds.")
            elif failed:
                which = f"all its {total} runs" if total > 1 else "its run"
                states = {
                    "failed": "failed",
                    "absent": "are not there" if total > 1 else "is not there",
                    "damaged": "cannot be compared",
                }
                ended = states[failed[0].state]
                sentences.append(f"{cell.title} is missing: {which} {ended}.")
        return sentences


def failure_in_words(outcome: Outcome) -> str:
    """What to do about a run that failed: its directory and the command that repeats it."""
    left = (
        "it left no run directory" if outcome.folder is None
        else f"its run directory is {short_path(outcome.folder)}"
    )  # fmt: skip
    return (
        f"{outcome.run.label} {outcome.state_in_words}; {left}. To repeat it alone: "
        f"{outcome.run.command}"
    )


def status_in_words(status: int) -> str:
    """``status 2``, or ``status -9 (SIGKILL; the memory may have run out)``."""
    if status == 0:
        return "status 0, but without a complete run"
    if status > 0:
        return f"status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        return f"status {status}"
    return f"status {status} ({name}{'; out of memory?' if name == 'SIGKILL' else ''})"
