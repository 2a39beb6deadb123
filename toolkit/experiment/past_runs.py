"""Which of the runs that are there already is the one that a cell asks for.

A run is recognised by its configuration, not by its name: one with the same settings, however it
was started, is taken as it is, and one that was interrupted is resumed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import yaml

from toolkit.comparison.methods import NAMES
from toolkit.config import RunConfig, read_yaml
from toolkit.disk import write_whole
from toolkit.environment import code_fingerprint
from toolkit.errors import UserError
from toolkit.experiment.cells import CellRun

_WALL_TIME = "wall_time.json"


def find_runs(run: CellRun) -> tuple[Path | None, Path | None]:
    """The newest complete and the newest interrupted run with a cell's configuration.

    Runs of other code do not count, nor those older than a file they were given.
    """
    complete = interrupted = None
    code = code_fingerprint()
    for folder in runs_of(run):
        if _recorded_code(folder) != code or _inputs_changed(folder, run.config):
            continue
        if is_complete(folder):
            complete = folder
        else:
            interrupted = folder
    return complete, interrupted


def runs_of(run: CellRun) -> list[Path]:
    """Run directories with a cell's configuration, oldest first, whatever code they are of."""
    parent = Path(run.config.output_dir) / run.recipe.stem
    found = [(file.stat().st_mtime_ns, file) for file in parent.glob("*/config.yaml")]
    wanted = _settings(run.config)
    return [file.parent for time, file in sorted(found) if _recorded(file, time) == wanted]


def is_complete(folder: Path) -> bool:
    """A run that has a summary is complete."""
    return (folder / "summary.json").exists()


def identity(run: CellRun) -> str:
    """Equal for two cells that would take the same run."""
    place = Path(run.config.output_dir).resolve() / run.recipe.stem
    return f"{place} {json.dumps(_settings(run.config), sort_keys=True)}"


def record_wall_time(folder: Path, seconds: float) -> None:
    """Note how long a run took from its command to its end, for estimates of later ones."""
    with contextlib.suppress(OSError):  # a full disk costs the estimate, not the run
        write_whole(folder / _WALL_TIME, json.dumps({"seconds": round(seconds, 3)}) + "\n")


def recorded_wall_times(run: CellRun) -> list[float]:
    """Seconds that complete runs with this configuration took, where it was noted."""
    return [
        seconds
        for folder in runs_of(run)
        if is_complete(folder) and (seconds := _read_wall_time(folder)) is not None
    ]


def _read_wall_time(folder: Path) -> float | None:
    try:
        return float(json.loads((folder / _WALL_TIME).read_text(encoding="utf-8"))["seconds"])
    except (OSError, ValueError, KeyError, TypeError):  # not there, or not ours
        return None


def _settings(config: RunConfig) -> dict[str, Any]:
    """What decides the result of a run, as it comes back from a file."""
    written: dict[str, Any] = yaml.safe_load(yaml.safe_dump(dataclasses.asdict(config)))
    return _without_names(written)


@functools.lru_cache(maxsize=4096)
def _recorded(file: Path, modified: int) -> dict[str, Any] | None:
    """Settings that a run recorded; None where they cannot be read.

    Args:
        modified: time of the file in ns; what was read before is known as long as it is the same.
    """
    try:
        return _without_names(read_yaml(file))
    except UserError:  # a run killed before it wrote them
        return None


def _without_names(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in NAMES}


def _recorded_code(folder: Path) -> str | None:
    try:
        content = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    code: str | None = content.get("code")
    return code


def _inputs_changed(folder: Path, config: RunConfig) -> bool:
    """True where a file that the configuration names was written after the run began."""
    began = (folder / "config.yaml").stat().st_mtime
    values = [value for value in _settings(config).values() if isinstance(value, str)]
    return any(Path(v).is_file() and Path(v).stat().st_mtime > began for v in values)
