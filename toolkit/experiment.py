"""Run a list of recipes and compare them; complete cells are not run twice.

A cell is recognised by its configuration, not by its name: a run with the same settings, however it
was started, is taken as it is, and one that was interrupted is resumed.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from rich.rule import Rule

from toolkit.config import RunConfig, load_config
from toolkit.console import console, notify
from toolkit.environment import code_fingerprint
from toolkit.errors import UserError
from toolkit.experiment_file import Cell, Experiment
from toolkit.launch import start_recipe

# Settings that name or show a run but do not change what it computes.
_NAMES = ("run_id", "output_dir", "title", "tracker")


def run_experiment(
    experiment: Experiment, output: Path | None = None, fresh: bool = False, examples: bool = True
) -> int:
    """Run what is missing, compare, write the report.

    Args:
        output: folder of the report; None takes the file's.
        fresh: run complete cells again.
        examples: show test texts in the report.

    Returns:
        Exit status: 1 when a cell failed or was not run.
    """
    folders: dict[str, Path] = {}
    for number, cell in enumerate(experiment.cells, start=1):
        console.print(Rule(f"{number}/{len(experiment.cells)} {cell.name}", align="left"))
        folder = _run_cell(cell, fresh)
        if folder is not None:
            folders[cell.name] = folder
    failed = [cell.name for cell in experiment.cells if cell.name not in folders]
    if failed:
        notify(f"warning: failed, and missing in the report: {', '.join(failed)}")
    _compare(experiment, folders, output or experiment.output, examples)
    return 1 if failed else 0


def _compare(
    experiment: Experiment, folders: dict[str, Path], output: Path, examples: bool
) -> None:
    from toolkit.compare import compare_runs
    from toolkit.report import build_report, print_comparison, write_report

    def found(names: list[str]) -> list[Path]:
        return [folders[name] for name in names if name in folders]

    if len(found(experiment.compare)) < 2:
        notify("fewer than two runs are left: nothing to compare, no report")
        return
    titles = {folders[cell.name]: cell.title for cell in experiment.cells if cell.name in folders}
    comparison = compare_runs(
        found(experiment.compare), found(experiment.learning_curve), titles=titles
    )
    report = build_report(
        comparison,
        title=experiment.title,
        show_examples=examples,
        command=f"toolkit experiment {experiment.file}",
    )
    console.print(Rule(experiment.title, align="left"))
    print_comparison(comparison, console)
    path = write_report(report, output)
    console.print(f"Report: {path}", soft_wrap=True, markup=False)


def _run_cell(cell: Cell, fresh: bool) -> Path | None:
    """Run, resume or reuse a cell; None when it failed."""
    complete, interrupted = find_runs(cell)
    if complete is not None and not fresh:
        notify(f"complete already: {complete}")
        return complete
    resume = interrupted is not None and not fresh
    arguments = ["--resume", str(interrupted)] if resume else cell.arguments
    others = [folder for folder in _runs_of(cell) if not (resume and folder == interrupted)]
    status = start_recipe(cell.module, cell.recipe, arguments)
    if status in (130, -2):
        raise KeyboardInterrupt
    if status != 0:
        notify(f"{cell.name} failed with status {status}")
        return None
    # Whatever commit it recorded: someone may have committed while it ran.
    made = [folder for folder in _runs_of(cell) if folder not in others and _is_complete(folder)]
    return made[-1] if made else None


def find_runs(cell: Cell) -> tuple[Path | None, Path | None]:
    """The newest complete and the newest interrupted run with a cell's configuration.

    Runs of other code do not count, nor those older than a file they were given.
    """
    complete = interrupted = None
    code = code_fingerprint()
    for folder in _runs_of(cell):
        if _recorded_code(folder) != code or _inputs_changed(folder, cell):
            continue
        if _is_complete(folder):
            complete = folder
        else:
            interrupted = folder
    return complete, interrupted


def _runs_of(cell: Cell) -> list[Path]:
    """Run directories with a cell's configuration, oldest first."""
    parent = Path(cell.config.output_dir) / cell.recipe.stem
    found = [file.parent for file in parent.glob("*/config.yaml")]
    found.sort(key=lambda folder: (folder / "config.yaml").stat().st_mtime_ns)
    return [folder for folder in found if _same_settings(folder, cell)]


def _is_complete(folder: Path) -> bool:
    return (folder / "summary.json").exists()


def _same_settings(folder: Path, cell: Cell) -> bool:
    try:
        recorded = load_config(type(cell.config), folder / "config.yaml")
    except UserError:  # another version's settings, or a run killed before it wrote them
        return False
    return _settings(recorded) == _settings(cell.config)


def _settings(config: RunConfig) -> dict[str, Any]:
    return {k: v for k, v in dataclasses.asdict(config).items() if k not in _NAMES}


def _recorded_code(folder: Path) -> str | None:
    try:
        content = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    code: str | None = content.get("code")
    return code


def _inputs_changed(folder: Path, cell: Cell) -> bool:
    """True where a file that the configuration names was written after the run began."""
    began = (folder / "config.yaml").stat().st_mtime
    values = [value for value in _settings(cell.config).values() if isinstance(value, str)]
    return any(Path(v).is_file() and Path(v).stat().st_mtime > began for v in values)
