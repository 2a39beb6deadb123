"""`python -m toolkit.bench --device cuda`: everything that is to be seen on a GPU, in one go.

Every benchmark in float32 and bf16 (packing, autocast, the kernels of packed attention), then
training under DistributedDataParallel on one card and on all of them. Writes a report and JSON.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

NAMES = (
    "packed-attention", "bert-predict", "bert-train", "gpt2-train", "gpt2-generate", "vit-predict",
    "vit-train",
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write; 1 where results differ or something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m toolkit.bench", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("names", nargs="*", help=f"of them (default: {', '.join(NAMES)})")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda", help="default: cuda")
    parser.add_argument("--output", default="results/speed-gpu", metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--reduced", action="store_true", help="fewer layers, fewer batches")
    parser.add_argument(
        "--precisions", nargs="+", choices=("fp32", "bf16"), default=["fp32", "bf16"]
    )
    parser.add_argument(
        "--processes", type=int, metavar="N", help="for DDP (default: the cards there are)"
    )
    args = parser.parse_args(argv)
    for name in args.names:
        if name not in NAMES:
            parser.error(f"no benchmark {name!r}: there are {', '.join(NAMES)}")
    if args.rounds < 1 or (args.processes is not None and args.processes < 1):
        parser.error("--rounds and --processes: expected at least 1")

    import torch
    from transformers.utils import logging

    from toolkit.bench.report import write_report
    from toolkit.bench.settings import BenchSettings
    from toolkit.bench.suite import Found, measure_all
    from toolkit.console import console, fail

    if args.device == "cuda" and not torch.cuda.is_available():
        fail("--device cuda: PyTorch sees no GPU here. With --device cpu the same runs on the CPU.")
        return 2
    Path(args.output).mkdir(parents=True, exist_ok=True)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    settings = BenchSettings(args.rounds, not args.reduced, args.device, "fp32")
    status = 0
    for precision in args.precisions:
        chosen = replace(settings, precision=precision)
        found: Found = measure_all(args.names or NAMES, chosen)
        status |= bool(found.problems)
        if found.interrupted:
            return 130
        if found.results:
            command = shlex.join(["python", "-m", "toolkit.bench", *(argv or sys.argv[1:])])
            written = write_report(found, Path(args.output) / precision, chosen, command)
            console.print(f"report: {written}", style="dim")
    processes = args.processes or torch.cuda.device_count()
    ddp, problem = _ddp(processes, settings)
    if problem is not None:
        fail(problem)
        status = 1
    (Path(args.output) / "ddp.json").write_text(json.dumps(ddp, indent=1) + "\n", encoding="utf-8")
    for line in ddp:
        console.print(
            f"DDP, {line['processes']} processes: {line['tokens_per_second']:,.0f} tokens/s, "
            f"weights at most {line['largest_difference_between_processes']:.2g} apart"
        )
    return status


def _ddp(processes: int, settings: Any) -> tuple[list[dict[str, Any]], str | None]:
    """On one process and on all; what was found, and what went wrong."""
    from toolkit.bench.ddp import measure_processes

    found = []
    for count in sorted({1, max(processes, 1)}):
        try:
            found.append(measure_processes(count, settings, layers=12 if settings.full else 2))
        except RuntimeError as error:
            return found, f"DDP: {error}"
    return found, None


if __name__ == "__main__":
    sys.exit(main())
