"""Energy, where the machine counts it: RAPL of the processors, the counter of NVIDIA's GPUs.

Both are counters that only rise: what was used between two moments is the difference of two
readings. They count all that the machine does, whoever asked for it. Where nothing can be read (in
most containers, in virtual machines, without the right to read), the answer is None.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

POWERCAP = Path("/sys/class/powercap")
_TOP_LEVEL = re.compile(r"\w+-rapl:\d+")  # intel-rapl:0; not its parts, such as intel-rapl:0:1


class _Counter(Protocol):
    def read(self) -> float:
        """Joules since an arbitrary moment; never falls.

        Raises:
            OSError, ValueError: it cannot be read (any more).
        """


class EnergyMeter:
    """Joules that were used since the meter was made.

    A package's counter begins again at 0 after some 65 or 262 kilojoules, minutes of full load; it
    has to be read once in that time for nothing to be lost.

    Args:
        powercap: folder of the kernel's power zones; None: the processors are left out.
        gpus: UUIDs of the NVIDIA GPUs in use, as NVML writes them ("GPU-5fd2…"). Their package
            (nvidia-ml-py) need not be installed; then they are not counted.

    ``source`` says in words what is counted; None where that is nothing. Of the packages, and of
    the GPUs, either all are counted or none: a part would pass for the whole.
    """

    source: str | None

    def __init__(self, powercap: Path | None = POWERCAP, gpus: Sequence[str] = ()) -> None:
        packages = _started([] if powercap is None else _packages(powercap))
        devices = _started(_gpu_counters(gpus))
        self._counters = [*packages, *devices]
        self.source = _in_words(len(packages), len(devices), len(gpus))

    def joules(self) -> float | None:
        """Since the start; None where nothing is counted, or a counter could not be read once."""
        if self.source is None:
            return None
        try:
            return sum(counter.read() - start for counter, start in self._counters)
        except (OSError, ValueError):
            self.source = None  # what was used until it comes back would be missing
            return None


def _started(counters: Sequence[_Counter]) -> list[tuple[_Counter, float]]:
    """Each with its reading; none of them where one cannot be read."""
    try:
        return [(counter, counter.read()) for counter in counters]
    except (OSError, ValueError):
        return []


def _in_words(packages: int, devices: int, gpus: int) -> str | None:
    parts = []
    if packages:
        parts.append(f"RAPL, {packages} package{'s' * (packages > 1)}, the whole machine")
    if devices:
        parts.append(f"NVML, {devices} GPU{'s' * (devices > 1)}")
    if not parts:
        return None
    missing = []
    if not packages:
        missing.append("without the processors")
    if gpus and not devices:
        missing.append("without the GPUs")
    return "; ".join([*parts, *missing])


class _Package:
    """A processor package; the kernel's counter begins again at 0 when it is full.

    Args:
        zone: its folder, with energy_uj and max_energy_range_uj, in microjoules.
    """

    def __init__(self, zone: Path) -> None:
        self.zone = zone
        self.last: int | None = None
        self.total = 0

    def read(self) -> float:
        now = self._number("energy_uj")
        if self.last is not None:
            used = now - self.last
            if used < 0:
                used += self._number("max_energy_range_uj")
            if used < 0:
                raise ValueError(f"{self.zone}: the counter fell by more than its range")
            self.total += used
        self.last = now
        return self.total / 1e6

    def _number(self, name: str) -> int:
        return int((self.zone / name).read_text(encoding="ascii"))


def _packages(powercap: Path) -> list[_Package]:
    """The packages, none twice; zones of the whole platform ("psys") contain them already."""
    zones: dict[str, Path] = {}
    try:
        for zone in sorted(powercap.iterdir()):
            if _TOP_LEVEL.fullmatch(zone.name):
                name = (zone / "name").read_text(encoding="ascii").strip()
                if name.startswith("package"):
                    zones.setdefault(name, zone)
    except (OSError, ValueError):
        return []
    return [_Package(zone) for zone in zones.values()]


class _Gpu:
    """A GPU's energy since its driver was loaded, which NVML counts in millijoules."""

    def __init__(self, nvml: Any, uuid: str) -> None:
        self.nvml = nvml
        try:
            self.handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        except nvml.NVMLError as error:
            raise OSError(str(error)) from None

    def read(self) -> float:
        try:
            return float(self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle)) / 1e3
        except self.nvml.NVMLError as error:  # older than Volta, or a part of a divided one
            raise OSError(str(error)) from None


def _gpu_counters(uuids: Sequence[str]) -> list[_Gpu]:
    if not uuids:
        return []
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return []
    try:
        nvml.nvmlInit()
        return [_Gpu(nvml, uuid) for uuid in uuids]
    except (nvml.NVMLError, OSError):
        return []
