"""`toolkit attention MODEL --analyse`: what every head attends to over many texts, in words."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import UserError

if TYPE_CHECKING:
    from toolkit.prediction.predictor import Options

OPTIONS = ("implementation", "device", "prefix", "source_language", "target_language")
"""How the model is opened, of `toolkit.prediction.predictor.Options`."""

TEXTS = 200
"""How many are read where nobody says."""


def configure(group: Any) -> None:
    """Declare the arguments, in a group of those of `toolkit attention`."""
    group.add_argument(
        "--analyse",
        action="store_true",
        help="instead of one text read many: those the run was tested on, or embedded ones. "
        "--output then names a folder for report.html, report.md and report.json; --json FILE "
        "holds the numbers",
    )
    group.add_argument(
        "--texts",
        dest="number",
        type=int,
        metavar="N",
        help=f"read at most so many (default: {TEXTS})",
    )


def run(args: argparse.Namespace, options: Options) -> int:
    """Analyse, write the report, and say what was found; 0."""
    _check(args)
    from toolkit.attention.analysing import analyse_model
    from toolkit.attention.analysis_report import as_values, summary_lines, write_analysis
    from toolkit.console import console, notify
    from toolkit.json_values import check_folder, check_writable, write_json

    check_writable(args.json)
    folder = None if args.output is None else str(args.output)
    _check_report(args.output)
    check_folder(folder)
    number = TEXTS if args.number is None else args.number
    found = analyse_model(args.model, number, options, args.max_tokens)
    if args.json is not None:
        write_json(as_values(found), args.json)
    if args.json != "-":
        console.print(
            f"{found.model}: {found.model_class} read {found.corpus.description}.", markup=False
        )
        for title, lines in summary_lines(found):
            console.print(f"\n[bold]{title}[/bold]")
            for line in lines:
                console.print(f"- {line}", markup=False)
    if folder is not None:
        notify(f"written: {write_analysis(found, folder, _command(args))}")
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.texts:
        raise UserError(
            "--analyse reads many texts of its own: leave TEXT out, or leave --analyse out to see "
            "one text."
        )
    unused = {"--png": args.png, "--layer": args.layer, "--head": args.head, "--kind": args.kind}
    if given := [option for option, value in unused.items() if value is not None]:
        raise UserError(
            f"{given[0]} belongs to the picture of one text; --analyse reports every layer and "
            "head. Leave it out."
        )
    if args.output is not None and args.output.suffix.lower() in (".html", ".htm"):
        raise UserError(
            f"--output {args.output}: with --analyse it names a folder, for several files. Leave "
            "the ending out."
        )


def _check_report(folder: Path | None) -> None:
    """Refuse a folder with the report of another command: its pictures would be removed, too."""
    if folder is None:
        return
    from toolkit.json_values import read_object_if_there

    content = read_object_if_there(folder / "report.json")
    if content and not {"model_class", "attention", "sentence"} <= set(content):
        raise UserError(
            f"{folder / 'report.json'} was not written by toolkit attention --analyse: it would "
            "be overwritten. Name another folder with --output."
        )


def _command(args: argparse.Namespace) -> str:
    """The command that makes the report again."""
    words = ["toolkit", "attention", args.model, "--analyse"]
    defaults = {"number": None, "implementation": "scratch", "device": "auto", "max_tokens": 128}
    for name in ("number", *OPTIONS, "max_tokens"):
        if (value := getattr(args, name)) != defaults.get(name):
            words += ["--texts" if name == "number" else f"--{name.replace('_', '-')}", str(value)]
    return shlex.join([*words, "--output", str(args.output)])
