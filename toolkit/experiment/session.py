"""Do the runs of experiments: what is complete is taken as it is, what stopped is resumed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from toolkit.console import console, notify
from toolkit.experiment.cells import CellRun, Experiment, short_path
from toolkit.experiment.comparing import write_comparison
from toolkit.experiment.estimate import Estimates, in_words, roughly
from toolkit.experiment.outcome import Outcome, Result
from toolkit.experiment.past_runs import (
    NOT_YET,
    PastRuns,
    find_runs,
    identity,
    is_complete,
    newest_readable,
    record_wall_time,
    runs_of,
    set_aside,
)
from toolkit.experiment.plan import earlier_times, plan_runs
from toolkit.experiment.summary import print_summary, write_summary
from toolkit.launch import start_recipe

_INTERRUPTED = (130, -2)


@dataclass(frozen=True)
class Settings:
    """How to do experiments.

    Args:
        output: folder of the report; None takes that of each file.
        fresh: do complete and interrupted runs again.
        report_only: run nothing; compare the newest complete runs, whatever code made them.
        examples: show test texts in the report.
        keep_going: do the other runs when one fails.
        json_file: where to write the summary as JSON.
        command: what the user typed, to be typed again after an interruption.
    """

    output: Path | None = None
    fresh: bool = False
    report_only: bool = False
    examples: bool = True
    keep_going: bool = True
    json_file: Path | None = None
    command: str = "toolkit experiment"


def run_experiments(experiments: Sequence[Experiment], settings: Settings | None = None) -> int:
    """Do what is missing, one file after the other; a report after each, one summary at the end.

    Returns:
        Exit status: 1 when a run failed or a report could not be written.

    Raises:
        KeyboardInterrupt: after saying how to go on.
        UserError: the summary cannot be written.
    """
    settings = settings or Settings()
    results = [Result(experiment) for experiment in experiments]
    estimates = earlier_times(experiments)
    session = _Session(plan_runs(experiments, estimates, settings.fresh), settings, estimates)
    try:
        for result in results:
            if len(results) > 1:
                console.print(
                    Text(f"{short_path(result.experiment.file)}: {result.experiment.title}")
                )
            session.conduct(result)
            write_comparison(result, settings.output, settings.examples)
    except KeyboardInterrupt:
        session.leave_out_the_rest(results)
        notify(
            "interrupted. Complete runs are kept, the interrupted one is resumed by the same "
            f"command: {settings.command}"
        )
        raise
    finally:
        print_summary(results)
        if settings.json_file is not None:
            write_summary(results, settings.json_file)
    bad = any(r.report is None or not all(o.done for o in r.outcomes) for r in results)
    return 1 if bad else 0


class _Session:
    """The runs of one command, in order, with what is known of their time."""

    def __init__(self, plan: list[list[Outcome]], settings: Settings, estimates: Estimates) -> None:
        self._settings = settings
        self._left = [outcome for outcomes in plan for outcome in outcomes]
        self._total = len(self._left)
        self._estimates = estimates
        self._made: dict[str, Path] = {}  # by this command: reused even when all is to be fresh
        self._began = time.monotonic()
        self._stopped = False

    def conduct(self, result: Result) -> None:
        """Do the runs of one experiment; the outcomes are added to its result as they come.

        Raises:
            KeyboardInterrupt: a run was interrupted.
        """
        for run in result.experiment.runs():
            outcome = Outcome(run, "not run") if self._stopped else self._do(run)
            del self._left[0]
            result.outcomes.append(outcome)
            if outcome.state == "interrupted":
                raise KeyboardInterrupt
            if outcome.state == "failed":
                notify(f"{outcome.run.label} {outcome.state_in_words}")
                self._stopped = not self._settings.keep_going

    def leave_out_the_rest(self, results: Sequence[Result]) -> None:
        """After an interruption: note which runs were not begun."""
        for result in results:
            for run in result.experiment.runs()[len(result.outcomes) :]:
                result.outcomes.append(Outcome(run, "not run"))

    def _do(self, run: CellRun) -> Outcome:
        if self._settings.report_only:
            folder, problem = newest_readable(run)
            if folder is None:
                return Outcome(run, "absent")
            return Outcome(run, "damaged" if problem else "reused", folder=folder, why=problem)
        complete, past = self._made.get(identity(run)), PastRuns()
        if complete is None and not self._settings.fresh:
            past = find_runs(run)
            complete = past.complete
        if complete is not None:
            line = f"{self._place(run)} · complete already: {short_path(complete)}"
            console.print(Text(line), soft_wrap=True)
            return Outcome(run, "reused", folder=complete)
        self._announce(run)
        for folder, problem in past.damaged.items():
            kept = short_path(set_aside(folder))
            notify(
                f"warning: {short_path(folder)} is damaged, so it is run again; what is left of it "
                f"is kept as {kept}. {problem}"
            )
        outcome = _start(run, past.interrupted)
        if outcome.done and outcome.folder is not None:
            self._made[identity(run)] = outcome.folder
        if outcome.state == "run" and outcome.folder is not None and outcome.seconds is not None:
            record_wall_time(outcome.folder, outcome.seconds)
            self._estimates.add(run, outcome.seconds)
        return outcome

    def _place(self, run: CellRun) -> str:
        return f"run {self._total - len(self._left) + 1}/{self._total} · {run.label}"

    def _announce(self, run: CellRun) -> None:
        """``run 5/12 · LoRA, seed 1 · 4 min 10 s gone, about 7 min left``."""
        gone = time.monotonic() - self._began
        later = [outcome.run for outcome in self._left[1:] if outcome.state != "reused"]
        left = self._estimates.left([run, *later])
        clock = [f"{in_words(gone)} gone"] if gone >= 1 else []
        clock += [] if left is None else [f"{roughly(left)} left"]
        parts = [self._place(run), *([", ".join(clock)] if clock else [])]
        line = Text(f"── {' · '.join(parts)} ", style="bold")
        line.append("─" * max(console.width - line.cell_len, 0))
        console.print(line, soft_wrap=True)
        why = self._left[0].why
        if why not in (None, NOT_YET):
            console.print(Text(f"because {why}"), soft_wrap=True)


def _start(run: CellRun, interrupted: Path | None) -> Outcome:
    """Run or resume a recipe in a process of its own."""
    arguments = run.arguments if interrupted is None else ["--resume", str(interrupted)]
    others = [folder for folder in runs_of(run) if folder != interrupted]
    began = time.monotonic()
    try:
        status = start_recipe(run.module, run.recipe, arguments)
    except KeyboardInterrupt:
        status = _INTERRUPTED[0]
    seconds = time.monotonic() - began
    # Whatever commit it recorded: someone may have committed while it ran.
    made = [folder for folder in runs_of(run) if folder not in others]
    folder = made[-1] if made else None
    if status in _INTERRUPTED:
        return Outcome(run, "interrupted", seconds=seconds, folder=folder)
    if status != 0 or folder is None or not is_complete(folder):
        return Outcome(run, "failed", status, seconds, folder)
    return Outcome(run, "run" if interrupted is None else "resumed", None, seconds, folder)
