"""`toolkit experiment FILE…`: run what files list, then compare."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

HELP = (
    "Run what an experiment file lists and compare it. A cell of the file is a method (recipe, "
    "preset, options); it is run once for every seed, one run after the other. Runs that are "
    "complete are taken as they are, interrupted ones are resumed; a run that fails does not stop "
    "the others, and the report says so."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="YAML files, see recipes/experiments/"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="folder of the report; default: what the file says",
    )
    parser.add_argument("--fresh", action="store_true", help="run again what is complete, too")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="say what would be run, reused and resumed, and how long it would take; run nothing",
    )
    parser.add_argument(
        "--report-only",
        action="store_true",
        help="run nothing: make the report again from the newest complete runs, whatever version "
        "of the code made them",
    )
    parser.add_argument(
        "--keep-going",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether to do the other runs when one fails; yes unless told otherwise",
    )
    parser.add_argument(
        "--no-examples",
        action="store_true",
        help="leave the test examples (texts, images) out of the report, for data that may not be "
        "copied",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="also write to FILE what became of every run, and where the reports are",
    )


def run(args: argparse.Namespace) -> int:
    """Run and compare; 1 when a run failed or there is no report."""
    from toolkit.errors import UserError
    from toolkit.experiment import Settings, load_experiments, run_experiments, show_plan

    if args.output is not None and len(args.files) > 1:
        raise UserError(
            f"--output {args.output}: {len(args.files)} files have a report each; give their "
            "folders in the files"
        )
    if args.json is not None and (args.json.is_dir() or not args.json.absolute().parent.is_dir()):
        raise UserError(f"--json {args.json}: expected a file in a folder that exists")
    if args.report_only and (args.fresh or args.dry_run):
        raise UserError("--report-only runs nothing: leave out --fresh and --dry-run")
    experiments = load_experiments(args.files)
    if args.dry_run:
        show_plan(experiments, fresh=args.fresh, json_file=args.json)
        return 0
    settings = Settings(
        output=args.output,
        fresh=args.fresh,
        report_only=args.report_only,
        examples=not args.no_examples,
        keep_going=args.keep_going,
        json_file=args.json,
        command=_command(args),
    )
    return run_experiments(experiments, settings)


def _command(args: argparse.Namespace) -> str:
    """The command line that goes on after an interruption: without --fresh."""
    words = ["toolkit", "experiment", *map(str, args.files)]
    words += ["--output", str(args.output)] if args.output is not None else []
    words += ["--report-only"] if args.report_only else []
    words += ["--no-keep-going"] if not args.keep_going else []
    words += ["--no-examples"] if args.no_examples else []
    words += ["--json", str(args.json)] if args.json is not None else []
    return shlex.join(words)
