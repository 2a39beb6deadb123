"""Where a program spends its time."""

from __future__ import annotations

import os

import torch
from torch.profiler import ProfilerActivity, profile

from toolkit.bench.case import Program

MOST = 6
"""So many operators are named."""


def shares_of_time(program: Program, device: torch.device) -> list[tuple[str, float]]:
    """Operators by their own time in one round, largest first; the rest is called "other"."""
    on_gpu = device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else it writes to the terminal itself
    with profile(activities=activities) as watched:
        program()
    times = {
        event.key.removeprefix("aten::"): float(
            event.self_device_time_total if on_gpu else event.self_cpu_time_total
        )
        for event in watched.key_averages()
    }
    total = sum(times.values())
    if not total:
        return []
    largest = sorted(times.items(), key=lambda item: -item[1])[:MOST]
    named = [(name, time / total) for name, time in largest]
    return [*named, ("other", 1 - sum(share for _, share in named))]
