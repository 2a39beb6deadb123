"""Peak memory of one side of a benchmark, in a process that does nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from toolkit.bench.settings import BenchSettings


class MemoryNotMeasured(Exception):  # noqa: N818  (the benchmark goes on without it)
    """The process ended without an answer; its last words are the message."""


def peak_memory(
    benchmark: str, number: int, side: str, folder: Path, settings: BenchSettings
) -> int:
    """Bytes of two rounds of `side`, with Python, the libraries and the model.

    Args:
        benchmark: its name.
        number: of the case in it.
        folder: what `Case.prepare` has written.

    Raises:
        MemoryNotMeasured: the process failed.
    """
    import torch

    asked = {
        "benchmark": benchmark, "number": number, "side": side, "folder": str(folder),
        "settings": asdict(settings), "threads": torch.get_num_threads(),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "toolkit.bench.memory"], input=json.dumps(asked), text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise MemoryNotMeasured(f"{benchmark}, {side}: {done.stderr.strip()[-2000:]}")
    return int(json.loads(done.stdout.strip().splitlines()[-1]))


def _measure_here() -> None:
    asked = json.load(sys.stdin)

    import torch

    from toolkit.bench import cases_of
    from toolkit.environment import peak_memory_bytes

    torch.set_num_threads(asked["threads"])
    settings = BenchSettings(**asked["settings"])
    case = cases_of(asked["benchmark"], settings)[asked["number"]]
    program = case.sides[asked["side"]].build(Path(asked["folder"]))
    for _ in range(2):  # an optimizer keeps more from its first step on
        program()
    print(peak_memory_bytes(settings.device))


if __name__ == "__main__":
    _measure_here()
