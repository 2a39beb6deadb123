"""The catalogue for people (tables) and for programs (plain values)."""

from __future__ import annotations

import ast
import importlib
import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.markup import escape
from rich.table import Table

from scratch_models.hub.architecture import Architecture
from toolkit.catalogue import (
    HALF_PRECISION,
    SCHEMA,
    Comparison,
    StageResult,
    Status,
    code_of,
    reference_head,
)
from toolkit.json_values import without_nan

STALE = "checked before the last change of the code"
UNKNOWN = "not checked yet"
DEFAULT_SIZE = "its default config"
_COLUMNS = {
    "forward": ["forward"],
    "gradients": ["gradients"],
    "training": ["training"],
    "generation": ["generation"],
    "loading,\nsaving": ["loading", "saving"],
    "half\nprecision": [HALF_PRECISION],
}


def print_list(
    architectures: Mapping[str, Architecture], statuses: Mapping[str, Status], console: Console
) -> None:
    """A row of a table for every architecture."""
    table = Table(box=box.HORIZONTALS, show_lines=True, pad_edge=False, collapse_padding=True)
    for heading in ("architecture", "paper and heads", "equal to HuggingFace's?"):
        table.add_column(heading, overflow="fold", ratio=1)
    for name, architecture in architectures.items():
        status = statuses.get(name, Status())
        table.add_row(
            "\n".join(_what(architecture, status)),
            f"{escape(architecture.paper)}\n[dim]{', '.join(architecture.classes)}[/dim]",
            "\n".join(_verdict(architecture, status)),
        )
    console.print(table)
    console.print(
        "Allowed difference: 1e-5, or 1e-5 of the largest value where that is above 1.\n"
        "All about one: toolkit models NAME. Check again: toolkit models --check"
    )


def _what(architecture: Architecture, status: Status) -> list[str]:
    """Names, counterpart and size."""
    names = f"[bold]{escape(architecture.title)}[/bold] [dim]({architecture.model_type})[/dim]"
    theirs = status.family or ("none" if status.known else UNKNOWN)
    count = status.parameters.get(reference_head(architecture))
    size = "unknown number of parameters:" if count is None else f"{count:,} parameters:"
    # A name is broken where one breaks it when reading it.
    reference = architecture.reference.replace("/", "/\n") or DEFAULT_SIZE
    return [names, f"HuggingFace: {escape(theirs)}", size, escape(reference)]


def _verdict(architecture: Architecture, status: Status) -> list[str]:
    """What the last check saw, in lines."""
    lines = [escape(status.seen_in_words())]
    if status.seen:
        worst = max((seen.largest for seen in status.seen), key=lambda stage: stage.difference)
        lines = [
            f"{_equal(status)} on {' and '.join(sorted({seen.date for seen in status.seen}))}",
            f"largest difference {worst.difference:.1e}" if worst.difference else "no difference",
            *lines,
        ]
    if is_stale(architecture, status):
        lines.append(f"[yellow]{STALE}[/yellow]")
    return lines


def _equal(status: Status) -> str:
    return "[bold red]NOT equal[/bold red]" if status.failed else "[green]equal[/green]"


def is_stale(architecture: Architecture, status: Status) -> bool:
    """True if any of its comparisons was made with other code than there is now."""
    code = code_of(architecture) if status.seen else ""
    return any(seen.code != code for seen in status.seen)


def print_architecture(architecture: Architecture, status: Status, console: Console) -> None:
    """Everything about one architecture."""
    console.print(Markdown(description(architecture)))
    console.print()
    console.print(f"[bold]Paper[/bold]: {escape(architecture.paper)}")
    console.print(f"[bold]Size[/bold]: parameters of {architecture.reference or DEFAULT_SIZE}")
    console.print(_heads(architecture, status))
    console.print(f"[bold]Parity[/bold]: {escape(status.seen_in_words())}")
    code = code_of(architecture)
    for seen in status.seen:
        console.print()
        console.print(_seen(seen, stale=seen.code != code))


def description(architecture: Architecture) -> str:
    """The package's docstring; where that is only a title, that of the module of its classes."""
    package = Path(str(importlib.import_module(architecture.package).__file__))
    files = (package, package.with_name(f"{architecture.module}.py"))
    # Parsed, not imported: the classes need torch.
    texts = [ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) for file in files]
    return next((text for text in texts if text and "\n" in text), architecture.title)


def _heads(architecture: Architecture, status: Status) -> Table:
    """The classes of both sides and their sizes."""
    table = Table(box=box.HORIZONTALS, pad_edge=False, show_lines=True, collapse_padding=True)
    table.add_column("head")
    table.add_column("ours\nHuggingFace's", overflow="fold")
    table.add_column("parameters", justify="right")
    for head, own_class in architecture.classes.items():
        theirs = status.huggingface.get(head) or ("none" if status.known else UNKNOWN)
        count = status.parameters.get(head)
        table.add_row(head, f"{own_class}\n{theirs}", UNKNOWN if count is None else f"{count:,}")
    return table


def _seen(seen: Comparison, stale: bool) -> RenderableType:
    """One set of weights: what was compared and the largest difference by head and stage."""
    name = seen.name if seen.weights == "random" else f"real weights of {seen.name}"
    models = f"{seen.models:,} model{'s' * (seen.models != 1)}"
    versions = ", ".join(f"{package} {number}" for package, number in seen.versions.items())
    lines = [
        f"[bold]{escape(name)}[/bold]: {seen.comparisons:,} comparisons of {models} "
        f"({seen.date}, {escape(versions)})"
    ]
    if stale:
        lines.append(f"[yellow]{STALE}[/yellow]")
    if seen.missing:
        lines.append(f"not in the checkpoint, so random: {escape(', '.join(seen.missing))}")
    lines += [f"[bold red]NOT equal[/bold red]: {escape(failure)}" for failure in seen.failures]
    return Group(*lines, _differences(seen))


def _differences(seen: Comparison) -> Table:
    """The largest difference by head and column."""
    columns = {
        heading: stages
        for heading, stages in _columns(seen).items()
        if any(stage in results for results in seen.heads.values() for stage in stages)
    }
    table = Table(
        box=box.HORIZONTALS,
        padding=0,  # 80 columns are just enough
        caption="values: how many were compared; then the largest difference, 0: none at all",
        caption_justify="left",
    )
    table.add_column("head")
    for heading in ("values", *columns):
        table.add_column(heading, justify="right", no_wrap=True)
    for head, results in seen.heads.items():
        compared = sum(result.comparisons for result in results.values())
        differences = [
            _difference([results[stage] for stage in stages if stage in results])
            for stages in columns.values()
        ]
        table.add_row(textwrap.fill(head, 14), f"{compared:,}", *differences)
    return table


def _columns(seen: Comparison) -> dict[str, list[str]]:
    """The stages by column; those nobody knew when this was written have a column each."""
    present = {stage for stages in seen.heads.values() for stage in stages}
    known = {stage for stages in _COLUMNS.values() for stage in stages}
    return {**_COLUMNS, **{stage: [stage] for stage in sorted(present - known)}}


def _difference(results: list[StageResult]) -> str:
    if not results:
        return ""
    worst = max(results, key=lambda result: (result.failed, result.difference))
    shown = f"{worst.difference:.0e}" if worst.difference else "0"
    return f"[bold red]{shown}[/bold red]" if worst.failed else shown


def to_dict(
    architectures: Mapping[str, Architecture], statuses: Mapping[str, Status]
) -> dict[str, Any]:
    """The catalogue as plain JSON values."""
    entries = [_entry(architectures[name], statuses.get(name, Status())) for name in architectures]
    content: dict[str, Any] = without_nan({"schema": SCHEMA, "architectures": entries})
    return content


def _entry(architecture: Architecture, status: Status) -> dict[str, Any]:
    code = code_of(architecture)
    return {
        "model_type": architecture.model_type,
        "title": architecture.title,
        "paper": architecture.paper,
        "package": architecture.package,
        "huggingface_family": status.family or None,
        "reference": architecture.reference or None,
        "reference_config": dict(architecture.reference_config),
        "reference_parameters": status.parameters.get(reference_head(architecture)),
        "heads": {
            head: {
                "class": own_class,
                "huggingface_class": status.huggingface.get(head),
                "parameters": status.parameters.get(head),
            }
            for head, own_class in architecture.classes.items()
        },
        "parity": {
            "equal": not status.failed if status.seen else None,
            "seen_on": status.seen_in_words(),
            "comparisons": sum(seen.comparisons for seen in status.seen),
            "failed": status.failed,
            "largest_difference": max((s.largest.difference for s in status.seen), default=None),
            "before_last_change_of_code": is_stale(architecture, status),
            "seen": [asdict(seen) | {"current_code": seen.code == code} for seen in status.seen],
        },
    }
