"""`--dry-run`: everything up to training is done for real, then the recipe ends with code 0."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, NoReturn

from toolkit.config import RunConfig, leaf_types
from toolkit.console import console, is_main_process
from toolkit.errors import RecipeEnds
from toolkit.json_values import write_json

if TYPE_CHECKING:
    from toolkit.run import Run

Facts = dict[str, dict[str, Any]]
"""Sections, each of facts by name. The end of a name says its unit: ``_bytes``, ``_seconds``."""


def end_dry_run(run: Run[Any], facts: Facts) -> NoReturn:
    """Print the settings and what was found, and end the recipe; no run directory was made.

    Args:
        facts: in the order to be shown. With `--dry-run-json FILE` they are written there as well;
            "-" prints them as JSON, and nothing else.

    Raises:
        RecipeEnds: always.
        UserError: the file cannot be written.
    """
    if is_main_process():
        config: RunConfig = run.config
        settings = describe_settings(config)
        if config.dry_run_json != "-":
            _print(run.recipe, settings, facts)
        if config.dry_run_json is not None:
            write_json({"recipe": run.recipe, "settings": settings, **facts}, config.dry_run_json)
    raise RecipeEnds


def describe_settings(config: RunConfig) -> dict[str, dict[str, Any]]:
    """By dotted name, ``value``, ``default`` and whether they differ; those that do come first."""
    defaults = type(config)()
    described = {}
    for name in leaf_types(type(config)):
        value, default = _setting(config, name), _setting(defaults, name)
        described[name] = {"value": value, "default": default, "changed": value != default}
    return dict(sorted(described.items(), key=lambda item: not item[1]["changed"]))


def _setting(config: RunConfig, name: str) -> Any:
    value = functools.reduce(getattr, name.split("."), config)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


def _print(recipe: str, settings: dict[str, dict[str, Any]], facts: Facts) -> None:
    from rich.markup import escape
    from rich.table import Table

    title = f"{recipe}, dry run: nothing was trained or written"
    table = Table(title=title, title_justify="left")
    table.add_column("what", overflow="fold")
    table.add_column("value", overflow="fold")
    for name, found in settings.items():
        value = _text(name, found["value"])
        if found["changed"]:
            value = f"{value}  (default {_text(name, found['default'])})"
        style = "bold" if found["changed"] else "dim"
        table.add_row(escape(name), escape(value), style=style)
    for section, entries in facts.items():
        table.add_section()
        table.add_row(section, "", style="bold")
        for name, value in entries.items():
            label = name.removesuffix("_bytes").removesuffix("_seconds").replace("_", " ")
            table.add_row(f"  {label}", escape(_text(name, value)))
    console.print(table)


def _text(name: str, value: Any) -> str:
    """A value as a person reads it."""
    from toolkit.report.wording import seconds, size

    if value is None:
        return "null"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(name, part)}" for key, part in value.items()) or "none"
    if isinstance(value, bool | str):
        return str(value).lower() if isinstance(value, bool) else value
    if name.endswith("_bytes"):
        return size(value)
    if name.endswith("_seconds") and isinstance(value, float):
        return seconds(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
