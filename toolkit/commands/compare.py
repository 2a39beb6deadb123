"""`toolkit compare`: which of several finished runs is better, and is that certain?"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

HELP = "compare finished runs on the same test examples and write a report"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `toolkit compare`."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run directory (two or more)")
    parser.add_argument(
        "--output", metavar="DIR", help="folder for report.md, report.json and the pictures"
    )
    parser.add_argument(
        "--learning-curve",
        nargs="+",
        default=[],
        metavar="RUN",
        help="runs of the same methods with other numbers of training examples",
    )
    parser.add_argument("--title", default="Comparison", help="heading of the report")
    parser.add_argument(
        "--no-examples", action="store_true", help="leave the test examples out of the report"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="compare runs that cannot be compared fairly; the report carries a warning",
    )
    parser.add_argument("--json", metavar="FILE", help="also write everything as JSON to FILE")


def run(args: argparse.Namespace) -> int:
    """Compare the runs, print the table and the verdict, write what was asked for."""
    from toolkit.compare import compare_runs
    from toolkit.console import console
    from toolkit.errors import UserError
    from toolkit.report import build_report, print_comparison, write_json, write_report

    comparison = compare_runs(args.runs, args.learning_curve, force=args.force)
    report = build_report(
        comparison,
        title=args.title,
        show_examples=not args.no_examples,
        command=_command(args),
    )
    print_comparison(comparison, console)
    if args.json:
        try:
            write_json(report, args.json)
        except OSError as error:
            raise UserError(f"{args.json} cannot be written: {error}") from error
    if args.output:
        path = write_report(report, args.output)
        console.print(f"Report: {path}", soft_wrap=True, markup=False)
    return 0


def _command(args: argparse.Namespace) -> str:
    """The command line that makes this report again."""
    words = ["toolkit", "compare", *map(_short, args.runs)]
    if args.learning_curve:
        words += ["--learning-curve", *map(_short, args.learning_curve)]
    if args.output:
        words += ["--output", _short(args.output)]
    if args.title != "Comparison":
        words += ["--title", args.title]
    words += ["--no-examples"] * args.no_examples + ["--force"] * args.force
    return shlex.join(words)


def _short(path: str) -> str:
    """The path as seen from here, where it lies below: nobody else has our folders above."""
    absolute = Path(path).absolute()
    below = absolute.is_relative_to(Path.cwd())
    return str(absolute.relative_to(Path.cwd())) if below else path
