"""`toolkit bench NAME…`: how fast ours is, next to HuggingFace's on the same work."""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from toolkit.bench import BENCHMARKS, FLOAT32_ONLY
from toolkit.errors import UserError
from toolkit.json_values import check_folder, check_writable, write_json

HELP = (
    "Measure speed against HuggingFace: both in one process, in turn, medians over rounds. The "
    "results are compared first; where they differ no ratio is given and the status is 1. "
    "toolkit bench bert-train gpt2-generate --threads 2"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    listed = "; ".join(f"{name}: {summary}" for name, summary in BENCHMARKS.items())
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"benchmarks (default: all). {listed}"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="timed runs of each side (default: 3)"
    )
    parser.add_argument(
        "--full", action="store_true",
        help="the large sizes: all 12 layers, more batches; several times as long",
    )  # fmt: skip
    parser.add_argument(
        "--threads", type=int, metavar="N", help="of the CPU (default: PyTorch's choice)"
    )
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu", help="where (default: cpu)"
    )
    parser.add_argument(
        "--precision", choices=("fp32", "bf16"), default="fp32",
        help="bf16: autocast on both sides; results may then differ by 0.1 (default: fp32)",
    )  # fmt: skip
    parser.add_argument(
        "--no-memory", action="store_true",
        help="leave out peak memory, which is measured in processes of their own",
    )  # fmt: skip
    parser.add_argument(
        "--output", metavar="FOLDER", help="also write a report there, with a chart"
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
    without = [name for name in args.names if name in FLOAT32_ONLY]
    if args.precision != "fp32" and without:
        raise UserError(f"--precision {args.precision}: {', '.join(without)} run in fp32 only.")
    check_writable(args.json)
    check_folder(args.output)
    if args.threads is not None:  # read by the tokenizers when they start
        os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    return _measure(args)


def _measure(args: argparse.Namespace) -> int:
    import torch
    from transformers.utils import logging

    from toolkit.bench import BenchSettings
    from toolkit.bench.suite import measure_all
    from toolkit.console import console

    if args.device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: PyTorch sees no GPU here. Leave it out, or use cpu.")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    settings = BenchSettings(
        args.rounds, args.full, args.device, args.precision, not args.no_memory
    )
    others = [n for n in BENCHMARKS if args.precision == "fp32" or n not in FLOAT32_ONLY]
    found = measure_all(args.names or others, settings, quiet=args.json == "-")
    if args.json is not None:
        write_json(found.to_list(), args.json)
    if args.output is not None and found.results:
        from toolkit.bench.report import write_report

        command = shlex.join(["toolkit", *sys.argv[1:]])
        written = write_report(found, args.output, settings, command)
        if args.json != "-":
            console.print(f"report: {written}", style="dim")
    if found.interrupted:
        return 130
    return 1 if found.problems else 0
