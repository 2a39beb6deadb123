"""Training on several cards: how much more than one card do they train?

`torchrun --nproc_per_node N -m toolkit.bench.ddp`; `python -m toolkit.bench` starts it by itself.
Every process trains our BERT on batches of its own, packed, under DistributedDataParallel; the
first says how many real tokens all of them together train in a second, and whether all hold the
same weights.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from toolkit.bench.bert import LOADERS, write_bert
from toolkit.bench.classes import OURS
from toolkit.bench.settings import BenchSettings
from toolkit.bench.steps import training
from toolkit.bench.texts import count_tokens, make_batches, random_batches

WARM_UP = 1


def main() -> None:
    """One process of several."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if args.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if args.device == "cuda" else "gloo")
    settings = BenchSettings(device=args.device, precision=args.precision)
    lengths = random_batches(world)[rank]
    model = DistributedDataParallel(LOADERS[OURS](args.model).to(args.device))
    step = training(model, make_batches([lengths]), settings)
    for _ in range(WARM_UP):
        step()
    distributed.barrier()
    started = time.perf_counter()
    for _ in range(args.steps):
        step()
    if args.device == "cuda":
        torch.cuda.synchronize()
    distributed.barrier()
    seconds = time.perf_counter() - started
    tokens, _ = count_tokens(random_batches(world))
    difference = _largest_difference(model)
    if rank == 0:
        found = {
            "processes": world, "tokens_per_second": args.steps * tokens / seconds,
            "largest_difference_between_processes": difference,
        }  # fmt: skip
        print(json.dumps(found), flush=True)
    distributed.destroy_process_group()


def measure_processes(
    processes: int, settings: BenchSettings, layers: int, steps: int = 5
) -> dict[str, Any]:
    """Start so many processes and return what the first one says.

    Raises:
        RuntimeError: they failed; its message holds their last words.
    """
    with TemporaryDirectory(prefix="toolkit-bench-") as folder:
        write_bert(Path(folder), layers)
        done = subprocess.run(
            [
                sys.executable, "-m", "torch.distributed.run", "--standalone",
                f"--nproc_per_node={processes}", "-m", "toolkit.bench.ddp", "--model", folder,
                "--device", settings.device, "--precision", settings.precision,
                "--steps", str(steps),
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise RuntimeError(f"{processes} processes: {done.stderr.strip()[-2000:]}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def _largest_difference(model: torch.nn.Module) -> float:
    """Between the weights of the first process and those of the others."""
    largest = torch.zeros((), device=next(model.parameters()).device)
    for parameter in model.parameters():
        first = parameter.detach().clone()
        distributed.broadcast(first, 0)
        largest = torch.maximum(largest, (parameter.detach() - first).abs().max())
    distributed.all_reduce(largest, distributed.ReduceOp.MAX)
    return float(largest)


if __name__ == "__main__":
    main()
