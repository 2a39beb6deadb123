"""`toolkit experiment FILE`: run what a file lists, then compare."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = (
    "Run every cell of an experiment file (recipe, preset, options), one after the other, then "
    "compare them. Cells that are complete are taken as they are, interrupted ones are resumed; a "
    "cell that fails does not stop the others."
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", type=Path, help="YAML file, see recipes/experiments/")
    parser.add_argument("--output", type=Path, help="folder of the report; default: from the file")
    parser.add_argument("--fresh", action="store_true", help="run complete cells again")
    parser.add_argument(
        "--no-examples",
        action="store_true",
        help="leave the test texts out of the report (for data that may not be copied)",
    )


def run(args: argparse.Namespace) -> int:
    """Run and compare; 1 when a cell failed."""
    from toolkit.experiment import run_experiment
    from toolkit.experiment_file import load_experiment

    experiment = load_experiment(args.file)
    return run_experiment(
        experiment, output=args.output, fresh=args.fresh, examples=not args.no_examples
    )
