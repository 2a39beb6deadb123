"""From the runs of an experiment to its report."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.rule import Rule
from rich.text import Text

from toolkit.console import console, notify
from toolkit.errors import UserError
from toolkit.experiment.cells import short_path
from toolkit.experiment.outcome import Result

if TYPE_CHECKING:
    from toolkit.comparison.saved_run import SavedRun


def write_comparison(result: Result, output: Path | None = None, examples: bool = True) -> None:
    """Compare what is there and write the report; ``result`` learns where, or why there is none.

    A method of which some seeds are missing is compared with those left; the report says so.

    Args:
        output: folder of the report; None takes the file's.
        examples: show test texts in it.
    """
    result.no_report = _hindrance(result)
    if result.no_report is None:
        try:
            result.report = _write(result, output or result.experiment.output, examples)
        except UserError as error:  # the other files of the command have reports of their own
            result.no_report = str(error)
    if result.no_report is not None:
        notify(f"no report of {short_path(result.experiment.file)}: {result.no_report}")


def _hindrance(result: Result) -> str | None:
    """Why there is nothing to report; None: there is."""
    if any(outcome.state == "not run" for outcome in result.outcomes):
        return "not all runs were tried"
    left = [name for name in result.experiment.compare if result.complete(name)]
    left += result.experiment.predictions
    if len(left) >= 2:
        return None
    return f"nothing to compare: {f'only {left[0]}' if left else 'no method'} is left"


def _read(result: Result) -> dict[Path, SavedRun]:
    """The complete runs, by folder; those that cannot be read are as good as failed.

    Raises:
        UserError: fewer than two methods are left.
    """
    from toolkit.comparison.saved_run import load_run

    found = {}
    for outcome in list(result.outcomes):
        if outcome.done and outcome.folder is not None:
            try:
                found[outcome.folder] = load_run(outcome.folder)
            except UserError as error:
                _lose(result, outcome.folder, str(error))
    if (hindrance := _hindrance(result)) is not None:
        raise UserError(hindrance)
    return found


def _lose(result: Result, folder: Path, reason: str) -> None:
    """A run is there and no use: the others are compared all the same, and the report says so."""
    for place, outcome in enumerate(result.outcomes):
        if outcome.done and outcome.folder == folder:
            notify(f"warning: {outcome.run.label}: {reason}")
            result.outcomes[place] = replace(outcome, state="damaged", why=reason)


def _write(result: Result, output: Path, examples: bool) -> Path:
    from toolkit.comparison.compare import compare_runs
    from toolkit.report import build_report, print_report, write_report

    runs = _read(result)
    experiment = result.experiment
    title_of = {cell.name: cell.title for cell in experiment.cells}
    methods = {
        outcome.folder: outcome.run.cell
        for outcome in result.outcomes
        if outcome.done and outcome.folder is not None
    }

    def of_cells(names: list[str]) -> list[SavedRun]:
        found = (outcome.folder for name in names for outcome in result.complete(name))
        return [runs[folder] for folder in found if folder is not None]

    comparison = compare_runs(
        of_cells(experiment.compare),
        learning_curve=of_cells(experiment.learning_curve),
        force=experiment.force,
        titles={folder: title_of[cell] for folder, cell in methods.items()},
        methods=methods if experiment.seeded else None,
        predictions=experiment.predictions,
        target=experiment.target,
        leave_out=True,
    )
    for lost in comparison.left_out:
        _lose(result, lost.folder, lost.reason)
    words = ["toolkit", "experiment", short_path(experiment.file)]
    words += [] if output == experiment.output else ["--output", short_path(output)]
    report = build_report(
        comparison,
        title=experiment.title,
        show_examples=examples,
        command=shlex.join([*words, *([] if examples else ["--no-examples"])]),
        missing=result.missing(),
        note=experiment.note,
    )
    console.print(Rule(Text(experiment.title), align="left"))
    print_report(report, console)
    path = write_report(report, output)
    console.print(f"Report: {path}", soft_wrap=True, markup=False)
    return path
