"""One cell of an experiment file: its settings are parsed as the recipe would parse them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from toolkit.arguments import parse_arguments
from toolkit.config import check_values
from toolkit.errors import UserError
from toolkit.experiment.cells import Cell, CellRun
from toolkit.experiment.keys import check_keys, check_seeds
from toolkit.launch import import_recipe
from toolkit.recipe_files import find_recipe

_KEYS = {
    "recipe": "a text", "title": "a text", "preset": "a text", "options": "keys and values",
    "seeds": "a list",
}  # fmt: skip
# Options of a command that leave no complete run behind.
_NO_RUN = ("dry_run", "dry_run_json", "lr_finder", "resume", "help", "print_config")


def read_cell(file: Path, where: str, name: str, content: Any, seeds: list[int] | None) -> Cell:
    """Check a cell and parse the settings of its runs.

    Args:
        file: the experiment's; its recipes are in the folder above, else in `recipes/` here, or
            in that of this project.
        where: file and cell, for messages.
        seeds: of the whole file, for a cell that has none of its own; None: one run with the
            recipe's own seed.

    Raises:
        UserError: a key, recipe, preset or option that is unknown, missing or of the wrong kind.
    """
    if not isinstance(content, dict):
        raise UserError(f"{where}: expected recipe, preset, options; found {content!r}")
    check_keys(content, _KEYS, required=("recipe",), where=where)
    seeds = content.get("seeds", seeds)
    if seeds is not None:
        check_seeds(seeds, where)
    options = content.get("options", {})
    _check_options(options, seeds, where)
    recipe = _find_recipe(f"{content['recipe']}.py", file, where)
    arguments = [f"--preset={content['preset']}"] if "preset" in content else []
    arguments += [f"--{key}={_as_argument(value, key, where)}" for key, value in options.items()]
    module = import_recipe(recipe)
    try:
        config = parse_arguments(module.Config, recipe, arguments).config
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    if config.push_to_hub is not None:
        raise UserError(
            f"{where}: push_to_hub: an experiment's runs would replace each other there. Push the "
            "one you choose: toolkit push RUN USER/NAME"
        )
    if seeds is None:
        return Cell(
            name, content.get("title", name),
            [CellRun(name, name, recipe, module, arguments, config)],
        )  # fmt: skip
    if config.run_id is not None and len(seeds) > 1:
        raise UserError(f"{where}: run_id: {len(seeds)} runs cannot all be '{config.run_id}'")
    runs = []
    for seed in seeds:
        seeded = dataclasses.replace(config, seed=seed)
        check_values(seeded)
        runs.append(
            CellRun(
                name, f"{name}, seed {seed}", recipe, module, [*arguments, f"--seed={seed}"], seeded
            )
        )
    return Cell(name, content.get("title", name), runs)


def _check_options(options: dict[Any, Any], seeds: list[int] | None, where: str) -> None:
    for key in options:
        plain = str(key).replace("-", "_")
        if plain in _NO_RUN:
            raise UserError(f"{where}: options: with '{key}' there is no run to compare")
        if plain == "seed" and seeds is not None:
            raise UserError(
                f"{where}: options: seed {options[key]} stands beside seeds {seeds}; leave one out"
            )


def _as_argument(value: Any, key: str, where: str) -> str:
    """null, true and lists as YAML writes them, not as Python does."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except TypeError:  # YAML knows dates
        raise UserError(
            f"{where}: options: {key}: {value} is read as a {type(value).__name__}; put it in "
            "quotation marks"
        ) from None


def _find_recipe(name: str, file: Path, where: str) -> Path:
    try:
        return find_recipe(name, file.resolve().parents[1])
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
