"""`toolkit claims [N …]`: what the chapter on Transformers claims, measured on this machine."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from toolkit.errors import UserError
from toolkit.json_values import check_folder, check_writable, write_json

HELP = (
    "Measure what the chapter on Transformers claims: small seeded experiments on the CPU, each "
    "with a verdict by a rule that was fixed before, a plot and its numbers, in one report. A "
    "claim that does not hold here is reported as such; the status is 1 only where one could not "
    "be measured. toolkit claims 1 6 --threads 2"
)
OUTPUT, QUICK_OUTPUT = "results/claims", "results/runs/claims-quick"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "numbers", nargs="*", metavar="N", help="numbers of claims (default: all; see --list)"
    )
    parser.add_argument(
        "--output", metavar="FOLDER",
        help="folder of the report. Claims that it holds already and that are not measured now "
        f"stay in it (default: {OUTPUT}; with --quick {QUICK_OUTPUT})",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N",
        help="everything random follows from it (default: 1; rules were settled with 0)",
    )  # fmt: skip
    parser.add_argument(
        "--quick", action="store_true",
        help="tiny sizes, to see within a minute that everything works; its verdicts are worth "
        "nothing",
    )  # fmt: skip
    parser.add_argument(
        "--list", action="store_true",
        help="say what is claimed and by which rule it is decided; measure nothing",
    )  # fmt: skip
    parser.add_argument(
        "--threads", type=int, metavar="N", help="of the CPU (default: PyTorch's choice)"
    )
    parser.add_argument(
        "--json", metavar="FILE", help="also write what is printed as JSON; -: only that"
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print and write; 1 where a claim could not be measured, 130 when interrupted."""
    from toolkit.claims.registry import chosen

    numbers = chosen(args.numbers)
    if args.threads is not None and args.threads < 1:
        raise UserError(f"--threads {args.threads}: expected at least 1.")
    if not 0 <= args.seed < 2**32:
        raise UserError(f"--seed {args.seed}: expected 0 to {2**32 - 1}.")
    check_writable(args.json)
    return _list(numbers, args.json) if args.list else _measure(numbers, args)


def _list(numbers: list[int], json_file: str | None) -> int:
    from toolkit.claims.registry import load
    from toolkit.claims.terminal import claim_values, print_claims
    from toolkit.console import console
    from toolkit.progress import working

    with working("reading the claims"):
        claims = [load(number) for number in numbers]
    if json_file is not None:
        write_json([claim_values(claim) for claim in claims], json_file)
    if json_file != "-":
        print_claims(claims, console)
    return 0


def _measure(numbers: list[int], args: argparse.Namespace) -> int:
    import torch
    from transformers.utils import logging

    from toolkit.claims.folder import read_measured, refuse_mixing, write_measured
    from toolkit.claims.record import Measured
    from toolkit.claims.session import measure_all
    from toolkit.claims.terminal import print_measured
    from toolkit.console import console, fail

    folder = Path(args.output or (QUICK_OUTPUT if args.quick else OUTPUT))
    everything = read_measured(folder)
    refuse_mixing(everything, args.quick, folder)
    check_folder(str(folder))
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    now: list[Measured] = []

    def keep(one: Measured) -> None:
        now.append(one)
        everything[one.number] = one
        write_measured(everything, folder)
        if args.json != "-":
            print_measured(one, console)

    interrupted = False
    try:
        measure_all(numbers, args.seed, args.quick, lambda n: _command(args, n), keep)
    except KeyboardInterrupt:
        interrupted = True
        fail("interrupted: the claims measured until now are in the report")
    if args.json is not None:
        write_json([one.to_dict() for one in now], args.json)
    if now and args.json != "-":
        console.print(f"report: {folder / 'report.html'}", style="dim", soft_wrap=True)
    if interrupted:
        return 130
    return 1 if any(one.error is not None for one in now) else 0


def _command(args: argparse.Namespace, number: int) -> str:
    """The command that measures one claim again."""
    words = ["toolkit", "claims", str(number), "--seed", str(args.seed)]
    words += [] if args.threads is None else ["--threads", str(args.threads)]
    words += ["--quick"] * args.quick
    return shlex.join(words)
