"""What an experiment will do before it does it: run, resume, reuse, and how long that takes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from toolkit.experiment.cells import CellRun, Experiment
from toolkit.experiment.estimate import Estimates
from toolkit.experiment.outcome import Outcome, Result, State
from toolkit.experiment.past_runs import find_runs, identity, recorded_wall_times
from toolkit.experiment.summary import print_plan, write_summary


def show_plan(
    experiments: Sequence[Experiment], fresh: bool = False, json_file: Path | None = None
) -> None:
    """Print what `run_experiments` would do, and write it as JSON where that is asked for.

    Raises:
        UserError: the file cannot be written.
    """
    plan = plan_runs(experiments, earlier_times(experiments), fresh)
    results = [Result(e, outcomes) for e, outcomes in zip(experiments, plan, strict=True)]
    print_plan(results)
    if json_file is not None:
        write_summary(results, json_file, dry_run=True)


def plan_runs(
    experiments: Sequence[Experiment], estimates: Estimates, fresh: bool = False
) -> list[list[Outcome]]:
    """What would be run, resumed and reused, in this order, for every experiment.

    Seconds are estimates, 0 for what is reused.

    Args:
        fresh: complete and interrupted runs do not count.
    """
    planned: dict[str, Outcome] = {}
    all_runs = {identity(run) for experiment in experiments for run in experiment.runs()}
    plan = []
    for experiment in experiments:
        outcomes = []
        for run in experiment.runs():
            # What an earlier file asks for too is there when this one needs it.
            if (same := planned.get(identity(run))) is not None:
                why = "a cell before asks for it, too"
                outcomes.append(Outcome(run, "reused", seconds=0, folder=same.folder, why=why))
            else:
                planned[identity(run)] = _planned(run, all_runs, fresh, estimates)
                outcomes.append(planned[identity(run)])
        plan.append(outcomes)
    return plan


def earlier_times(experiments: Sequence[Experiment]) -> Estimates:
    """What complete runs of the same cells, of earlier commands, say about their time."""
    estimates = Estimates()
    runs = (run for experiment in experiments for run in experiment.runs())
    for run in {identity(run): run for run in runs}.values():
        for seconds in recorded_wall_times(run):
            estimates.add(run, seconds)
    return estimates


def _planned(run: CellRun, all_runs: Collection[str], fresh: bool, estimates: Estimates) -> Outcome:
    if fresh:
        return Outcome(run, "run", seconds=estimates.of(run), why="everything is to be fresh")
    past = find_runs(run, all_runs)
    if past.complete is not None:
        return Outcome(run, "reused", seconds=0, folder=past.complete)
    state: State = "run" if past.interrupted is None else "resumed"
    return Outcome(run, state, None, estimates.of(run), past.interrupted, past.why)
