"""`toolkit bench NAME…`: how fast ours is, next to HuggingFace's on the same work."""

from __future__ import annotations

import argparse
import os

from toolkit.bench import BENCHMARKS
from toolkit.errors import UserError
from toolkit.json_values import check_writable, write_json

HELP = (
    "Measure speed against HuggingFace: both in one process, in turn, medians over rounds. The "
    "results are compared first; where they differ no ratio is given and the status is 1. "
    "toolkit bench predict --rounds 5 --threads 2"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    listed = "; ".join(f"{name}: {summary}" for name, summary in BENCHMARKS.items())
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"benchmarks (default: all). {listed}"
    )
    parser.add_argument(
        "--rounds", type=int, default=5, metavar="N", help="timed runs of each side (default: 5)"
    )
    parser.add_argument(
        "--full", action="store_true", help="the large size: for predict 10,000 texts, not 600"
    )
    parser.add_argument(
        "--threads", type=int, metavar="N", help="of the CPU (default: PyTorch's choice)"
    )
    parser.add_argument(
        "--json", metavar="FILE", help="also write everything as JSON; -: only that"
    )


def run(args: argparse.Namespace) -> int:
    """Measure and print; 1 where results differ."""
    from toolkit.data.suggest import near_names

    for name in args.names:
        if name not in BENCHMARKS:
            raise UserError(
                f"no benchmark {name!r}: there are {', '.join(BENCHMARKS)}."
                f"{near_names(name, BENCHMARKS)}"
            )
    for flag in ("rounds", "threads"):
        number = getattr(args, flag)
        if number is not None and number < 1:
            raise UserError(f"--{flag} {number}: expected at least 1.")
    check_writable(args.json)
    return _measure(args)


def _measure(args: argparse.Namespace) -> int:
    if args.threads is not None:  # read by the tokenizers when they start
        os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    import importlib

    import torch
    from transformers.utils import logging

    from toolkit.bench import BenchSettings, ResultsDiffer
    from toolkit.console import console, fail

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    settings, found, status = BenchSettings(args.rounds, args.full), [], 0
    for name in args.names or BENCHMARKS:
        try:
            result = importlib.import_module(f"toolkit.bench.{name}").measure(settings)
        except ResultsDiffer as difference:
            fail(str(difference))
            found.append({"benchmark": name, "error": str(difference)})
            status = 1
            continue
        found.append(result.to_dict())
        if args.json != "-":
            console.print(result.table())
    if args.json is not None:
        write_json(found, args.json)
    return status
