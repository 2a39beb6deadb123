"""Measure a case: prepare, compare, time in turn, then memory and profile."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from toolkit.bench.case import Case, Program
from toolkit.bench.interleaved import run_once, time_in_turn
from toolkit.bench.memory import MemoryNotMeasured, peak_memory
from toolkit.bench.profile import shares_of_time
from toolkit.bench.record import BenchResult
from toolkit.bench.settings import BenchSettings
from toolkit.compute import matmul_rate, read_rate
from toolkit.console import notify
from toolkit.progress import progress_bar


def measure(case: Case, benchmark: str, number: int, settings: BenchSettings) -> BenchResult:
    """Everything about one case.

    Args:
        benchmark: its name; it and the number are how other processes find the case.
        number: of the case in it.

    Raises:
        ResultsDiffer: the programs do not compute the same.
        UserError: what it works with is not at hand.
    """
    device = torch.device(settings.device)
    with TemporaryDirectory(prefix="toolkit-bench-") as name:
        folder = Path(name)
        notify(f"{case.name}: making the models ready, comparing the results ...")
        case.prepare(folder)
        programs = {name: _waiting(side.build(folder), device) for name, side in case.sides.items()}
        agreement = case.check(run_once(programs), folder)
        rates = [matmul_rate(device, settings.dtype)]
        with progress_bar(
            f"measuring {case.name}", settings.rounds * len(programs)
        ) as display:  # fmt: skip
            seconds = time_in_turn(programs, settings.rounds, display.advance)
        rates.append(matmul_rate(device, settings.dtype))
        reading = None if case.bytes_read is None else read_rate(device)
        profile = shares_of_time(programs[case.ours], device)
        programs.clear()
        flops = case.flops(folder)
        memory = {}
        for side in case.memory if settings.memory else ():
            notify(f"{case.name}: peak memory of {side} in a process of its own ...")
            try:
                memory[side] = peak_memory(benchmark, number, side, folder, settings)
            except MemoryNotMeasured as problem:
                notify(f"the peak memory of {problem} is not known")
    return BenchResult(
        case.name, case.task, case.ours, settings, seconds, case.rows, case.units, case.unit,
        {name: side.positions for name, side in case.sides.items()}, agreement, case.goals,
        flops, max(rates), case.bytes_read, reading, memory, case.memory_goal, profile, case.note,
    )  # fmt: skip


def _waiting(program: Program, device: torch.device) -> Program:
    """On a GPU a program has ended when the GPU has."""
    if device.type != "cuda":
        return program

    def run() -> object:
        result = program()
        torch.cuda.synchronize()
        return result

    return run
