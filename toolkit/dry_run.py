"""`--dry-run`: everything up to training is done for real, then the recipe ends with code 0."""

from __future__ import annotations

from typing import Any, NoReturn

from rich.table import Table

from toolkit.console import console, is_main_process
from toolkit.errors import RecipeEnds


def end_dry_run(facts: dict[str, Any]) -> NoReturn:
    """Print what was found and end the recipe; nothing was written.

    Args:
        facts: what would be trained, in the order to be shown.

    Raises:
        RecipeEnds: always.
    """
    if is_main_process():
        table = Table(title="dry run: nothing was trained or written", title_justify="left")
        table.add_column("what")
        table.add_column("value")
        for name, value in facts.items():
            table.add_row(name, f"{value:,}" if isinstance(value, int) else str(value))
        console.print(table)
    raise RecipeEnds
