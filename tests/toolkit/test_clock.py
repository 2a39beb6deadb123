"""Laps are added up, and joules only where every one of them is known."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import toolkit.clock
from toolkit.clock import Clock, start_clock


class Meter:
    """A meter that the test moves."""

    source: str | None = "a test"

    def __init__(self) -> None:
        self.used: float | None = 0.0

    def joules(self) -> float | None:
        return self.used


def clock_of(meter: Any) -> Clock:
    return Clock(meter)


def test_what_happens_between_laps_does_not_count() -> None:
    meter = Meter()
    clock = clock_of(meter)
    clock.start()
    meter.used = 5.0
    time.sleep(0.02)
    lap = clock.stop()
    assert lap.joules == 5
    assert 0.02 <= lap.seconds < 1
    meter.used = 105.0
    time.sleep(0.05)
    with clock.running():
        meter.used = 107.0
    assert clock.joules == 7
    assert lap.seconds <= clock.seconds < lap.seconds + 0.04
    assert clock.source == "a test"


def test_one_lap_without_joules_makes_the_sum_unknown() -> None:
    meter = Meter()
    clock = clock_of(meter)
    clock.start()
    meter.used = None
    assert clock.stop().joules is None
    meter.used = 3.0
    clock.start()
    meter.used = 4.0
    assert clock.stop().joules == 1
    assert clock.joules is None


def test_without_a_meter_only_time_passes() -> None:
    clock = Clock()
    with clock.running():
        pass
    assert clock.seconds > 0
    assert (clock.joules, clock.source) == (None, None)


def accelerator(processes: int, main: bool = True, device: str = "cpu") -> Any:
    return SimpleNamespace(
        num_processes=processes, is_main_process=main, device=torch.device(device)
    )


def test_only_the_main_process_of_one_machine_reads_energy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = tmp_path / "intel-rapl:0"
    zone.mkdir()
    for name, content in (("name", "package-0"), ("energy_uj", "0"), ("max_energy_range_uj", "9")):
        (zone / name).write_text(content)
    monkeypatch.setattr(toolkit.clock, "POWERCAP", tmp_path)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert start_clock(accelerator(1)).source == "RAPL, 1 package, the whole machine"
    assert start_clock(accelerator(4)).source is not None
    assert start_clock(accelerator(4, main=False)).source is None
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert start_clock(accelerator(4)).source is not None
    assert start_clock(accelerator(8)).source is None  # a second machine has the other four
