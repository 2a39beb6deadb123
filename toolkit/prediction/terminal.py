"""A few answers as a table for the eye."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from toolkit.prediction.predictor import NOTE

_NOTE_HEADING = "note"
"""Short, as the names of columns break where a terminal is narrow."""
MOST_LABELS = 6
"""Classes that have a column each; of more the probabilities are left out."""


def table_of(records: Sequence[Mapping[str, Any]], ending: str = "") -> Table:
    """One line per record; probabilities as percentages, of entities their texts and types."""
    shown = [_shown(record, ending) for record in records]
    names = list(dict.fromkeys(name for record in shown for name in record))
    table = Table()
    for name in names:
        number = all(_is_percentage(record.get(name, "")) for record in shown)
        heading = _NOTE_HEADING if name == f"{NOTE}{ending}" else name
        table.add_column(escape(heading), justify="right" if number else "left", overflow="fold")
    for record in shown:
        table.add_row(*(escape(record.get(name, "")) for name in names))
    return table


def _shown(record: Mapping[str, Any], ending: str) -> dict[str, str]:
    cells: dict[str, str] = {}
    for name, value in record.items():
        if name == f"probabilities{ending}":
            if len(value) <= MOST_LABELS:
                cells |= {str(label): _percentage(p) for label, p in value.items()}
        elif name == f"probability{ending}":
            cells[name] = _percentage(value)
        elif name == f"entities{ending}":
            parts = (f"{e['text']} [{e['type']}, {e['score']:.1%}]" for e in value)
            cells[name] = "  ".join(parts)
        elif name not in (f"tagged_tokens{ending}", f"tags{ending}"):
            cells[name] = "" if value is None else str(value)
    return cells


def _percentage(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _is_percentage(cell: str) -> bool:
    return cell == "" or cell.endswith("%")
