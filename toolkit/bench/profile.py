"""Where a program spends its time."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.profiler import profile as cpu_profile
from torch.profiler import ProfilerActivity, profile

from toolkit.bench.case import Program

MOST = 6
"""So many operators are named."""


def shares_of_time(program: Program, device: torch.device) -> list[tuple[str, float]]:
    """Operators by their own time in one round, largest first; the rest is called "other"."""
    on_gpu = device.type == "cuda"
    # Kineto, which a GPU needs, writes lines of its own to the terminal.
    watching: Any = (
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        if on_gpu
        else cpu_profile(use_kineto=False)
    )
    with watching as watched:
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
