"""Time and energy of what is measured, and of nothing that happens in between."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from accelerate import Accelerator

from toolkit.energy import POWERCAP, EnergyMeter


@dataclass(frozen=True)
class Lap:
    """What passed between a start and a stop; ``joules`` is None where they are not counted."""

    seconds: float
    joules: float | None


class Clock:
    """Adds up laps: ``seconds``, and ``joules`` where the meter can read them.

    ``source`` says in words what the joules are of; None where they are not counted.
    """

    def __init__(self, meter: EnergyMeter | None = None) -> None:
        self._meter = meter or EnergyMeter(powercap=None)
        self.seconds = 0.0
        self.joules: float | None = 0.0 if self._meter.source else None
        self.start()

    @property
    def source(self) -> str | None:
        """Of the joules."""
        return self._meter.source

    def start(self) -> None:
        """Begin a lap."""
        self._joules = self._meter.joules()
        self._started = time.perf_counter()

    def stop(self) -> Lap:
        """End the lap, add it up and return it."""
        seconds, joules = time.perf_counter() - self._started, self._meter.joules()
        used = None if joules is None or self._joules is None else joules - self._joules
        self.seconds += seconds
        # Once a lap is missing, so is a part of the sum.
        self.joules = None if self.joules is None or used is None else self.joules + used
        return Lap(seconds, used)

    @contextmanager
    def running(self) -> Iterator[None]:
        """A lap around a block."""
        self.start()
        yield
        self.stop()


def start_clock(accelerator: Accelerator) -> Clock:
    """A clock for the work of all processes; energy is read by the main one, for its machine.

    Where they are spread over several machines, no process can read it all: nobody reads any.
    """
    on_this_machine = int(os.environ.get("LOCAL_WORLD_SIZE", accelerator.num_processes))
    if not accelerator.is_main_process or on_this_machine < accelerator.num_processes:
        return Clock()
    return Clock(EnergyMeter(POWERCAP, _gpus(accelerator, on_this_machine)))


def _gpus(accelerator: Accelerator, processes: int) -> list[str]:
    """UUIDs of the GPUs that the processes of this machine use, the first so many of them."""
    if accelerator.device.type != "cuda":
        return []
    if torch.cuda.device_count() < processes:  # every process sees its own only
        return [""]  # no GPU's: they cannot all be read
    first = (accelerator.device.index or 0) if processes == 1 else 0
    properties = (torch.cuda.get_device_properties(first + i) for i in range(processes))
    return [f"GPU-{getattr(found, 'uuid', '')}" for found in properties]
