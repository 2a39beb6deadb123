"""Experiment files: which recipes to run with which settings and seeds, and what to compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolkit.config_files import read_yaml
from toolkit.errors import UserError
from toolkit.experiment.cells import Cell, Experiment
from toolkit.experiment.keys import check_keys, check_seeds
from toolkit.experiment.matrix import expand_matrix
from toolkit.experiment.past_runs import identity
from toolkit.experiment.reading import read_cell

_KEYS = {
    "title": "a text", "output": "a text", "seeds": "a list", "cells": "keys and values",
    "matrix": "keys and values, or a list of such", "compare": "a list",
    "learning_curve": "a list", "force": "true or false", "target": "a number",
    "predictions": "keys and values", "note": "a text",
}  # fmt: skip


def load_experiments(files: Sequence[Path]) -> list[Experiment]:
    """Read several files, all of them before anything runs.

    Raises:
        UserError: see `load_experiment`; two files that would write the same report.
    """
    experiments = [load_experiment(file) for file in files]
    by_output: dict[Path, Path] = {}
    for experiment in experiments:
        folder = experiment.output.resolve()
        if (other := by_output.get(folder)) is not None:
            raise UserError(
                f"{other} and {experiment.file} would both write their report to "
                f"{experiment.output}"
            )
        by_output[folder] = experiment.file
    return experiments


def load_experiment(file: Path) -> Experiment:
    """Read and check an experiment file.

    Its keys: ``title``; ``output`` (folder of the report); ``seeds`` (every cell is run once per
    seed); ``cells`` (name -> recipe, title, preset, options, seeds) and ``matrix`` (one or a list,
    see `expand_matrix`), one of them at least; ``compare`` (names of cells; all where it is left
    out) and ``learning_curve`` (likewise, runs with other numbers of examples); for the report
    ``force``, ``target`` (a validation value; the time until it is reached), ``predictions`` (title
    -> file of somebody else's predictions) and ``note``.

    Paths are relative to the folder the command is called from. A recipe is the name of a file in
    the folder above the experiment's: ``recipes/experiments/x.yaml`` names ``recipes/<recipe>.py``.

    Raises:
        UserError: a key, recipe, preset, option or cell name that is unknown, missing or of the
            wrong kind, or nothing to compare; names file, key and cell.
    """
    content = read_yaml(file)
    check_keys(content, _KEYS, required=("output",), where=str(file))
    if "seeds" in content:
        check_seeds(content["seeds"], str(file))
    cells = _read_cells(file, content)
    predictions = _read_predictions(file, content.get("predictions", {}))
    compare = _names_to_compare(file, content, cells)
    curve = [str(name) for name in content.get("learning_curve", [])]
    _check_names(file, [cell.name for cell in cells], compare=compare, learning_curve=curve)
    _check_compared(file, [cell for cell in cells if cell.name in compare], predictions)
    matrices = content.get("matrix", [])
    listed = [content, *content.get("cells", {}).values(),
              *([matrices] if isinstance(matrices, dict) else matrices)]  # fmt: skip
    return Experiment(
        file=file,
        title=content.get("title", file.stem),
        output=Path(content["output"]),
        cells=cells,
        compare=compare,
        learning_curve=curve,
        seeded=any("seeds" in part for part in listed),
        force=content.get("force", False),
        target=content.get("target"),
        predictions=predictions,
        note=content.get("note"),
    )


def _read_cells(file: Path, content: dict[str, Any]) -> list[Cell]:
    """The cells that are listed, then those of every matrix."""
    found = [(f"{file}: cell '{name}'", str(name), cell)
             for name, cell in content.get("cells", {}).items()]  # fmt: skip
    matrices = content.get("matrix", [])
    several = isinstance(matrices, list)
    for number, matrix in enumerate(matrices if several else [matrices], start=1):
        where = f"{file}: matrix {number}" if several else f"{file}: matrix"
        expanded = expand_matrix(matrix, where)
        found += [(f"{where}: cell '{name}'", name, cell) for name, cell in expanded.items()]
    if not found:
        raise UserError(f"{file}: expected 'cells' or 'matrix' with at least one cell in it")
    places: dict[str, str] = {}
    for where, name, _ in found:
        if name in places:
            raise UserError(f"{where}: there is a cell of this name before: {places[name]}")
        places[name] = where
    seeds = content.get("seeds")
    return [read_cell(file, where, name, cell, seeds) for where, name, cell in found]


def _names_to_compare(file: Path, content: dict[str, Any], cells: list[Cell]) -> list[str]:
    if "compare" in content:
        return [str(name) for name in content["compare"]]
    if content.get("learning_curve"):
        raise UserError(
            f"{file}: the key 'compare' is missing: beside a learning_curve it says which cells "
            "are in the table"
        )
    return [cell.name for cell in cells]


def _read_predictions(file: Path, content: dict[Any, Any]) -> dict[str, Path]:
    for title, path in content.items():
        if not isinstance(path, str) or not Path(path).is_file():
            raise UserError(f"{file}: predictions: '{title}': no such file: {path}")
    return {str(title): Path(path) for title, path in content.items()}


def _check_names(file: Path, names: list[str], **listed: list[str]) -> None:
    for key, mentioned in listed.items():
        for name in mentioned:
            if name not in names:
                raise UserError(f"{file}: {key}: no cell is called '{name}'; there are {names}")
            if mentioned.count(name) > 1:
                count = mentioned.count(name)
                raise UserError(f"{file}: {key}: '{name}' stands there {count} times")


def _check_compared(file: Path, cells: list[Cell], predictions: dict[str, Path]) -> None:
    """There are two methods at least, told apart by title and settings."""
    if len(cells) + len(predictions) < 2:
        names = [*(cell.name for cell in cells), *predictions]
        raise UserError(f"{file}: compare: expected at least two cells, found {names}")
    titles = [*(cell.title for cell in cells), *predictions]
    for title in titles:
        if titles.count(title) > 1:
            raise UserError(f"{file}: title: {titles.count(title)} methods are called '{title}'")
    seen: dict[str, str] = {}
    for run in (run for cell in cells for run in cell.runs):
        other = seen.setdefault(identity(run), run.cell)
        if other != run.cell:
            raise UserError(
                f"{file}: cells '{other}' and '{run.cell}' have the same settings: a method "
                "cannot be its own rival"
            )
