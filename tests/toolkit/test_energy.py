"""Joules from counters that wrap, vanish, are forbidden, or stand for the same thing twice."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolkit.energy import EnergyMeter

RANGE = 1_000_000  # microjoules: a joule


def write_zone(root: Path, zone: str, name: str, energy: int, full: int = RANGE) -> Path:
    folder = root / zone
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "energy_uj").write_text(f"{energy}\n")
    (folder / "max_energy_range_uj").write_text(f"{full}\n")
    return folder


def set_energy(zone: Path, energy: int) -> None:
    (zone / "energy_uj").write_text(f"{energy}\n")


def test_packages_are_added_and_their_parts_and_the_platform_are_not(tmp_path: Path) -> None:
    first = write_zone(tmp_path, "intel-rapl:0", "package-0", 100)
    second = write_zone(tmp_path, "intel-rapl:1", "package-1", 5_000)
    part = write_zone(tmp_path, "intel-rapl:0:0", "core", 0)
    platform = write_zone(tmp_path, "intel-rapl:2", "psys", 0)
    again = write_zone(tmp_path, "intel-rapl-mmio:0", "package-0", 0)
    (tmp_path / "intel-rapl").mkdir()  # the kernel's own folder of the driver
    meter = EnergyMeter(tmp_path)
    assert meter.source == "RAPL, 2 packages, the whole machine"
    assert meter.joules() == 0
    set_energy(first, 250_100)
    set_energy(second, 505_000)
    for zone in (part, platform, again):
        set_energy(zone, 900_000)
    assert meter.joules() == pytest.approx(0.75)
    assert meter.joules() == pytest.approx(0.75)  # since the start, not since the last reading


def test_amd_and_one_package(tmp_path: Path) -> None:
    zone = write_zone(tmp_path, "amd-rapl:0", "package-0", 0)
    meter = EnergyMeter(tmp_path)
    assert meter.source == "RAPL, 1 package, the whole machine"
    set_energy(zone, 42)
    assert meter.joules() == pytest.approx(42e-6)


@settings(max_examples=50, deadline=None, suppress_health_check=[
    HealthCheck.function_scoped_fixture
])  # fmt: skip
@given(st.integers(0, RANGE - 1), st.lists(st.integers(0, RANGE - 1), max_size=8))
def test_a_counter_that_begins_again_loses_nothing(
    tmp_path: Path, begin: int, used: list[int]
) -> None:
    """Whatever is used between two readings, as long as it is less than the range."""
    zone = write_zone(tmp_path, "intel-rapl:0", "package-0", begin)
    meter = EnergyMeter(tmp_path)
    total = 0
    for amount in used:
        total += amount
        set_energy(zone, (begin + total) % RANGE)
        assert meter.joules() == pytest.approx(total / 1e6, abs=1e-12)


def test_a_counter_that_vanishes_is_not_trusted_again(tmp_path: Path) -> None:
    zone = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    other = write_zone(tmp_path, "intel-rapl:1", "package-1", 0)
    meter = EnergyMeter(tmp_path)
    set_energy(other, 100)
    shutil.rmtree(zone)
    assert meter.joules() is None
    assert meter.source is None
    write_zone(tmp_path, "intel-rapl:0", "package-0", 500)
    assert meter.joules() is None


@pytest.mark.parametrize("content", ["", "-", "12 34", "\n"])
def test_a_counter_that_holds_no_number_is_none(tmp_path: Path, content: str) -> None:
    zone = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    (zone / "energy_uj").write_text(content)
    assert EnergyMeter(tmp_path).source is None


def test_a_counter_that_falls_by_more_than_its_range_is_none(tmp_path: Path) -> None:
    zone = write_zone(tmp_path, "intel-rapl:0", "package-0", 3 * RANGE)
    meter = EnergyMeter(tmp_path)
    set_energy(zone, RANGE)
    assert meter.joules() is None


def forbid(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to read a file as the kernel does to a user without the right (root has it)."""
    if os.geteuid() != 0:
        file.chmod(0)
        return
    read_text = Path.read_text

    def refuse(path: Path, *arguments: Any, **options: Any) -> str:
        if path == file:
            raise PermissionError(13, "Permission denied", str(path))
        return read_text(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", refuse)


def test_one_package_that_may_not_be_read_hides_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    zone = write_zone(tmp_path, "intel-rapl:1", "package-1", 0)
    forbid(zone / "energy_uj", monkeypatch)
    meter = EnergyMeter(tmp_path)
    assert meter.source is None
    assert meter.joules() is None


def test_without_the_folder_nothing_is_counted(tmp_path: Path) -> None:
    for powercap in (tmp_path / "none", tmp_path, None):
        meter = EnergyMeter(powercap)
        assert meter.source is None
        assert meter.joules() is None


# GPUs


class NVMLError(Exception):
    pass


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A stand-in for NVIDIA's package: millijoules by UUID."""
    energy: dict[str, int] = {}

    def handle(uuid: str) -> str:
        if uuid not in energy:
            raise NVMLError("Not Found")
        return uuid

    def total(handle: str) -> int:
        if energy[handle] < 0:
            raise NVMLError("Not Supported")
        return energy[handle]

    module = SimpleNamespace(
        NVMLError=NVMLError, nvmlInit=lambda: None, nvmlDeviceGetHandleByUUID=handle,
        nvmlDeviceGetTotalEnergyConsumption=total,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return energy


def test_gpus_are_added_to_the_packages(tmp_path: Path, nvml: dict[str, int]) -> None:
    zone = write_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    nvml |= {"GPU-a": 7_000, "GPU-b": 10, "GPU-other": 0}
    meter = EnergyMeter(tmp_path, ["GPU-a", "GPU-b"])
    assert meter.source == "RAPL, 1 package, the whole machine; NVML, 2 GPUs"
    nvml |= {"GPU-a": 9_000, "GPU-b": 510, "GPU-other": 10**6}
    set_energy(zone, 250_000)
    assert meter.joules() == pytest.approx(2 + 0.5 + 0.25)
    nvml["GPU-b"] = -1
    assert meter.joules() is None


def test_what_is_missing_is_said(tmp_path: Path, nvml: dict[str, int]) -> None:
    nvml["GPU-a"] = 0
    assert EnergyMeter(None, ["GPU-a"]).source == "NVML, 1 GPU; without the processors"
    write_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    without = "RAPL, 1 package, the whole machine; without the GPUs"
    assert EnergyMeter(tmp_path, ["GPU-unknown"]).source == without
    nvml["GPU-b"] = -1  # one that does not count its energy
    assert EnergyMeter(tmp_path, ["GPU-a", "GPU-b"]).source == without
    assert EnergyMeter(None, ["GPU-b"]).source is None


def test_without_nvidias_package_gpus_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # importing it fails
    assert EnergyMeter(None, ["GPU-a"]).source is None
    write_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    assert EnergyMeter(tmp_path, ["GPU-a"]).source == (
        "RAPL, 1 package, the whole machine; without the GPUs"
    )
