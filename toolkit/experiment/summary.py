"""What became of all runs: a table, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from toolkit.console import console
from toolkit.disk import write_whole
from toolkit.errors import UserError
from toolkit.experiment.cells import short_path
from toolkit.experiment.estimate import in_words, roughly
from toolkit.experiment.outcome import Outcome, Result, failure_in_words
from toolkit.experiment.past_runs import NOT_YET


def print_summary(results: Sequence[Result]) -> None:
    """Cell, seed, state and wall time of every run; then what failed, and how to repeat it."""
    console.print(_table("Summary", "wall time", results, in_words))
    for outcome in (outcome for result in results for outcome in result.outcomes):
        if outcome.state == "failed":
            console.print(failure_in_words(outcome), soft_wrap=True, markup=False)


def print_plan(plan: Sequence[Result]) -> None:
    """What would be done, with the estimate where there is one."""
    console.print(_table("Dry run: nothing was run", "estimate", plan, roughly, plan=True))
    left = [o for result in plan for o in result.outcomes if o.state != "reused"]
    known = [outcome.seconds for outcome in left if outcome.seconds is not None]
    words = f"{len(left)} to run"
    if known:
        words += f", {roughly(sum(known))}"
    elif left:
        words += "; how long that takes is not known before the first of them is done"
    console.print(words, markup=False)


def write_summary(results: Sequence[Result], file: Path, dry_run: bool = False) -> None:
    """Write everything as JSON.

    Raises:
        UserError: the file cannot be written.
    """
    content = {
        "schema_version": 1,
        "dry_run": dry_run,
        "failed": sum(o.state == "failed" for result in results for o in result.outcomes),
        "experiments": [
            {
                "file": str(result.experiment.file),
                "title": result.experiment.title,
                "report": None if result.report is None else str(result.report),
                "no_report": result.no_report,
                "missing": [] if dry_run else result.missing(),
                "runs": [_as_json(outcome, dry_run) for outcome in result.outcomes],
            }
            for result in results
        ],
    }
    try:
        write_whole(file, json.dumps(content, ensure_ascii=False, indent=2) + "\n")
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error}") from error


_PLANNED = {"reused": "complete", "run": "will run", "resumed": "will be resumed"}


def _table(
    title: str, clock: str, results: Sequence[Result], words: Any, *, plan: bool = False
) -> Table:
    """One line a run; of a plan with the reason for what will be done."""
    table = Table(title=title, title_justify="left")
    several = len(results) > 1
    why = ["because"] if plan else []
    for column in [*(["file"] if several else []), "cell", "seed", "state", clock, *why]:
        right = column in ("seed", clock)
        folds = column in why  # the reasons are long, and give way to all else
        table.add_column(
            column,
            justify="right" if right else "left",
            no_wrap=not folds,
            overflow="fold" if folds else "ellipsis",
        )
    for result in results:
        for outcome in result.outcomes:
            seconds = "" if not outcome.seconds else words(outcome.seconds)
            state = _planned_state(outcome) if plan else outcome.state_in_words
            cells = [outcome.run.cell, str(outcome.run.config.seed), state, seconds]
            file = [short_path(result.experiment.file)] if several else []
            because = [outcome.why or ""] if plan else []
            table.add_row(*[Text(cell) for cell in [*file, *cells, *because]])
        table.add_section()
    return table


def _planned_state(outcome: Outcome) -> str:
    again = outcome.state == "run" and outcome.why not in (None, NOT_YET)
    return "runs again" if again else _PLANNED[outcome.state]


def _as_json(outcome: Outcome, dry_run: bool) -> dict[str, Any]:
    seconds = None if outcome.seconds is None else round(outcome.seconds, 3)
    return {
        "cell": outcome.run.cell,
        "seed": outcome.run.config.seed,
        "recipe": outcome.run.recipe.stem,
        "state": outcome.state,
        "why": outcome.why,
        "status": outcome.status,
        "estimated_seconds" if dry_run else "wall_seconds": seconds,
        "folder": None if outcome.folder is None else str(outcome.folder),
        "command": outcome.run.command,
    }
