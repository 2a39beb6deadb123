"""`toolkit parity`: is the from-scratch model equal to HuggingFace's on this checkpoint?"""

from __future__ import annotations

import argparse
import json
import pickle
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from scratch_models.hub.architecture import HEADS
from toolkit.errors import UserError, first_line

if TYPE_CHECKING:
    from rich.table import Table

    from scratch_models.parity import ParityPair, ParityReport, ParityRow

HELP = "compare a from-scratch model with HuggingFace's own class on a checkpoint"

_ATTENTIONS = ("sdpa", "eager", "scratch")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `toolkit parity`."""
    parser.add_argument(
        "model", metavar="MODEL", help="a model folder, a name on the Hub or demo:chinese-bert"
    )
    parser.add_argument(
        "--head", choices=tuple(HEADS), help="which class; default: the one the checkpoint names"
    )
    parser.add_argument(
        "--attn",
        choices=_ATTENTIONS,
        default="sdpa",
        help="attention implementation of both sides, where there is attention (default: sdpa)",
    )
    parser.add_argument("--json", metavar="FILE", help="also write every row as JSON to FILE")


def run(args: argparse.Namespace) -> int:
    """Compare, print the table and the verdict; 1 if anything differs beyond its tolerance."""
    from scratch_models.parity import check_pair
    from toolkit.console import console, notify

    pair = load_both(args.model, args.head, args.attn)
    notify(f"comparing {type(pair.scratch).__name__} with {type(pair.reference).__name__} …")
    report = check_pair(pair, args.model)
    console.print(_table(report))
    if report.missing:
        names = ", ".join(report.missing)
        console.print(
            f"not in the checkpoint, so the same random values on both sides: {names}",
            soft_wrap=True,
            markup=False,
        )
    console.print(_verdict(report), soft_wrap=True)
    if args.json:
        _write_json(report, args.json)
    return 0 if report.passed else 1


def load_both(model: str, head: str | None = None, attn: str = "sdpa") -> ParityPair:
    """A checkpoint in our class and in HuggingFace's; arguments as those of the command.

    Raises:
        UserError: the checkpoint cannot be found, read or compared.
    """
    from safetensors import SafetensorError
    from transformers.utils import logging

    from scratch_models.parity import checkpoint_head, classes_to_compare, load_pair, read_config
    from toolkit.sources import resolve_model

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    folder = resolve_model(model)
    try:
        config = read_config(folder)
        classes_to_compare(config.model_type, head or checkpoint_head(config))
    except (OSError, AttributeError, TypeError) as error:  # also where it holds no settings at all
        raise UserError(f"{model}: its config.json cannot be read: {first_line(error)}") from error
    except ValueError as error:
        raise UserError(f"{model}: {error}") from error
    try:
        pair = load_pair(folder, head, attn)
    except ValueError as error:
        raise UserError(f"{model}: {error}") from error
    except (OSError, RuntimeError, EOFError, SafetensorError, pickle.UnpicklingError) as error:
        raise UserError(f"{model}: its weights cannot be loaded: {first_line(error)}") from error
    if len(pair.info["missing_keys"]) >= len(list(pair.scratch.parameters())):
        raise UserError(
            f"{model}: its weight files hold none of the weights of {type(pair.scratch).__name__}; "
            "their names belong to another architecture."
        )
    return pair


def _table(report: ParityReport) -> Table:
    """One line a comparison; parameters of one layer share a line, which shows their worst."""
    from rich.table import Table

    table = Table(title=f"{report.scratch_class} and {report.huggingface_class}: {report.model}")
    table.add_column("compared")
    table.add_column("values", justify="right")
    table.add_column("largest difference", justify="right")
    table.add_column("tolerance", justify="right")
    table.add_column("equal", justify="center")
    stage = None
    for (next_stage, part), rows in _lines(report.rows).items():
        if stage is not None and next_stage != stage:
            table.add_section()
        stage = next_stage
        worst = max(rows, key=lambda row: (_badness(row), row.tolerance))
        mark = (
            "[green]yes[/green]" if all(row.passed for row in rows) else "[bold red]NO[/bold red]"
        )
        line = (f"{stage}: {part}", str(len(rows)), f"{worst.difference:.2g}")
        table.add_row(*line, f"{worst.tolerance:.2g}", mark)
    return table


def _lines(rows: Iterable[ParityRow]) -> dict[tuple[str, str], list[ParityRow]]:
    """Rows by stage and line of the table, in order."""
    lines: dict[tuple[str, str], list[ParityRow]] = {}
    for row in rows:
        lines.setdefault((row.stage, _line_of(row)), []).append(row)
    return lines


def _line_of(row: ParityRow) -> str:
    """What a line of the table says of a row: its layer, or its part of the model."""
    if row.stage == "gradients":
        layer = re.search(r"(?:(encoder|decoder)\.)?(layer|stage)s\.(\d+)\.", row.name)
        if layer is None:
            return "outside the layers"
        side, kind, number = layer.groups()
        return f"{side} {kind} {int(number) + 1}" if side else f"{kind} {int(number) + 1}"
    if row.stage.startswith("after ") and row.name not in ("losses", "outputs"):
        return "parameters and buffers"
    if row.stage in ("generation", "half precision"):
        return row.name.partition(":")[0]
    return row.name


def _badness(row: ParityRow) -> float:
    """How far a row is from failing: its difference in units of its tolerance; NaN is worst."""
    if row.difference != row.difference:
        return float("inf")
    return row.difference / row.tolerance if row.tolerance else row.difference * 1e9


def _verdict(report: ParityReport) -> str:
    from rich.markup import escape

    what = f"{len(report.rows)} comparisons"
    if report.attn_implementation != "none":
        what += f" with attention {report.attn_implementation!r}"
    size = f"{report.parameters:,} parameters"
    if report.passed:
        return (
            f"[bold green]equal[/bold green]: all {what}, {size}, are within tolerance "
            "(1e-5 of the largest value, at least 1e-5; for gradients 1e-5 of the largest; "
            "in half precision 4 units in the last place; generated tokens are the same)."
        )
    failures = report.failures
    worst = max(failures, key=_badness)
    return (
        f"[bold red]NOT equal[/bold red]: {len(failures)} of {what}, {size}, miss; the worst is "
        f"{escape(worst.stage)}: {escape(worst.name)}, off by {worst.difference:.2g} "
        f"where {worst.tolerance:.2g} is allowed."
    )


def _write_json(report: ParityReport, path: str) -> None:
    try:
        Path(path).write_text(json.dumps(report.to_dict(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error
