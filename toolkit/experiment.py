"""Run a list of recipes and compare them; complete cells are not run twice.

A cell is recognised by its configuration, not by its name: a run with the same settings, however it
was started, is taken as it is, and one that was interrupted is resumed.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.rule import Rule

from toolkit.config import (
    RunConfig,
    load_config,
    parse_arguments,
    read_yaml,
)
from toolkit.console import console, notify
from toolkit.environment import git_state
from toolkit.errors import UserError
from toolkit.launch import import_recipe, start_recipe

# Settings that name a run but do not change what it computes.
_NAMES = ("run_id", "output_dir", "title")


@dataclass(frozen=True)
class Cell:
    """One run of an experiment."""

    name: str
    recipe: Path
    arguments: list[str]
    config: RunConfig
    module: ModuleType  # the recipe's, imported


@dataclass(frozen=True)
class Experiment:
    """What an experiment file says."""

    file: Path
    title: str
    output: Path
    cells: list[Cell]
    compare: list[str]
    learning_curve: list[str]


def load_experiment(file: Path) -> Experiment:
    """Read an experiment file.

    Its keys: ``title``, ``output`` (folder of the report), ``cells`` (name -> recipe, preset,
    options), ``compare`` and ``learning_curve`` (names of cells). Paths are relative to the folder
    the command is called from; recipes are names of files in ``recipes/`` beside the file's folder.

    Raises:
        UserError: an unknown or missing key, recipe, preset, option or cell name.
    """
    content = read_yaml(file)
    known = ("title", "output", "cells", "compare", "learning_curve")
    _check_keys(content, known, required=("output", "cells", "compare"), where=str(file))
    cells = [_read_cell(file, name, cell) for name, cell in content["cells"].items()]
    names = [cell.name for cell in cells]
    for key in ("compare", "learning_curve"):
        for name in content.get(key, []):
            if name not in names:
                raise UserError(f"{file}: {key}: no cell is called '{name}'; there are {names}")
    return Experiment(
        file,
        content.get("title", file.stem),
        Path(content["output"]),
        cells,
        content["compare"],
        content.get("learning_curve", []),
    )


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
    comparison = compare_runs(found(experiment.compare), found(experiment.learning_curve))
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

    Runs of another commit do not count: the code may compute something else.
    """
    complete = interrupted = None
    state = git_state()
    for folder in _runs_of(cell):
        if _recorded_git_state(folder) != state:
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


def _recorded_git_state(folder: Path) -> Any:
    try:
        return json.loads((folder / "environment.json").read_text(encoding="utf-8"))["git"]
    except (OSError, ValueError, KeyError):
        return "unknown"


def _read_cell(file: Path, name: str, content: Any) -> Cell:
    where = f"{file}: cell '{name}'"
    if not isinstance(content, dict):
        raise UserError(f"{where}: expected recipe, preset, options; found {content!r}")
    _check_keys(content, ("recipe", "preset", "options"), required=("recipe",), where=where)
    recipe = file.resolve().parents[1] / f"{content['recipe']}.py"
    if not recipe.is_file():
        raise UserError(f"{where}: no such recipe: {recipe.name} (expected in {recipe.parent})")
    arguments = [f"--preset={content['preset']}"] if "preset" in content else []
    for key, value in (content.get("options") or {}).items():
        # null, true and lists as YAML writes them, not as Python does
        arguments.append(f"--{key}={value if isinstance(value, str) else json.dumps(value)}")
    module = import_recipe(recipe)
    try:
        config = parse_arguments(module.Config, recipe, arguments).config
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    return Cell(name, recipe, arguments, config, module)


def _check_keys(
    content: dict[str, Any], known: tuple[str, ...], required: tuple[str, ...], where: str
) -> None:
    for key in content:
        if key not in known:
            raise UserError(f"{where}: unknown key '{key}'; known: {', '.join(known)}")
    for key in required:
        if key not in content:
            raise UserError(f"{where}: the key '{key}' is missing")
