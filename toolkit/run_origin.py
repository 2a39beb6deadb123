"""Which recipe started a run: another one cannot continue it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from toolkit.errors import UserError


def recorded_environment(run: Path) -> dict[str, Any]:
    """What a run directory says in environment.json; empty where that cannot be read."""
    try:
        started = json.loads((run / "environment.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return started if isinstance(started, dict) else {}


def recorded_recipe(run: Path) -> str | None:
    """The recipe that a run directory names in environment.json; None: it does not say."""
    recipe = recorded_environment(run).get("recipe")
    return recipe if isinstance(recipe, str) else None


def check_recipe(run: Path, recipe: str) -> None:
    """Raise a UserError where ``run``, which is to be resumed, is of another recipe.

    A run that does not say which recipe it is of (an older one) is let through.
    """
    recorded = recorded_recipe(run)
    if recorded not in (None, recipe):
        raise UserError(
            f"--resume {run}: this is a run of {recorded}, not of {recipe}; use "
            f"recipes/{recorded}.py --resume {run}"
        )
