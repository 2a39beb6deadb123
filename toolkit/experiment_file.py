"""Experiment files: which recipes to run with which settings, and what to compare."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from toolkit.config import RunConfig, parse_arguments, read_yaml
from toolkit.errors import UserError
from toolkit.launch import import_recipe

_KINDS: dict[str, type] = {"a text": str, "keys and values": dict, "a list": list}


@dataclass(frozen=True)
class Cell:
    """One run of an experiment."""

    name: str
    title: str  # in the report
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

    Its keys: ``title``, ``output`` (folder of the report), ``cells`` (name -> recipe, title,
    preset, options), ``compare`` and ``learning_curve`` (names of cells). Paths are relative to the
    folder the command is called from. A recipe is the name of a file in the folder above the
    experiment's: ``recipes/experiments/x.yaml`` names ``recipes/<recipe>.py``.

    Raises:
        UserError: a key, recipe, preset, option or cell name that is unknown, missing or of the
            wrong kind, or nothing to compare.
    """
    content = read_yaml(file)
    kinds = {
        "title": "a text", "output": "a text", "cells": "keys and values", "compare": "a list",
        "learning_curve": "a list",
    }  # fmt: skip
    _check(content, kinds, required=("output", "cells", "compare"), where=str(file))
    cells = [_read_cell(file, str(name), cell) for name, cell in content["cells"].items()]
    compare, curve = content["compare"], content.get("learning_curve", [])
    _check_names(file, cells, compare, curve)
    title = content.get("title", file.stem)
    return Experiment(file, title, Path(content["output"]), cells, compare, curve)


def _check_names(file: Path, cells: list[Cell], compare: list[Any], curve: list[Any]) -> None:
    names = [cell.name for cell in cells]
    for key, listed in (("compare", compare), ("learning_curve", curve)):
        for name in listed:
            if name not in names:
                raise UserError(f"{file}: {key}: no cell is called '{name}'; there are {names}")
            if listed.count(name) > 1:
                raise UserError(f"{file}: {key}: '{name}' stands there {listed.count(name)} times")
    if len(compare) < 2:
        raise UserError(f"{file}: compare: expected at least two cells, found {compare}")


def _read_cell(file: Path, name: str, content: Any) -> Cell:
    where = f"{file}: cell '{name}'"
    if not isinstance(content, dict):
        raise UserError(f"{where}: expected recipe, preset, options; found {content!r}")
    kinds = {
        "recipe": "a text", "title": "a text", "preset": "a text", "options": "keys and values",
    }  # fmt: skip
    _check(content, kinds, required=("recipe",), where=where)
    recipe = file.resolve().parents[1] / f"{content['recipe']}.py"
    if not recipe.is_file():
        raise UserError(f"{where}: no such recipe: {recipe.name} (expected in {recipe.parent})")
    arguments = [f"--preset={content['preset']}"] if "preset" in content else []
    for key, value in content.get("options", {}).items():
        # null, true and lists as YAML writes them, not as Python does
        arguments.append(f"--{key}={value if isinstance(value, str) else json.dumps(value)}")
    module = import_recipe(recipe)
    try:
        config = parse_arguments(module.Config, recipe, arguments).config
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    return Cell(name, content.get("title", name), recipe, arguments, config, module)


def _check(
    content: dict[str, Any], kinds: dict[str, str], required: tuple[str, ...], where: str
) -> None:
    for key, value in content.items():
        if key not in kinds:
            raise UserError(f"{where}: unknown key '{key}'; known: {', '.join(kinds)}")
        if not isinstance(value, _KINDS[kinds[key]]):
            raise UserError(f"{where}: {key}: expected {kinds[key]}, found {value!r}")
    for key in required:
        if key not in content:
            raise UserError(f"{where}: the key '{key}' is missing")
