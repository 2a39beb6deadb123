"""Which of the runs that are there already is the one that a cell asks for.

A run is recognised by its configuration, not by its name: one with the same settings, however it
was started, is taken as it is, and one that was interrupted is resumed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from toolkit.comparison.methods import NAMES
from toolkit.config import RunConfig
from toolkit.config_files import read_yaml
from toolkit.disk import write_whole
from toolkit.environment import code_fingerprint
from toolkit.errors import UserError
from toolkit.experiment.cells import CellRun, short_path
from toolkit.json_values import leaves
from toolkit.task_scores.predictions import NotFinite

_WALL_TIME = "wall_time.json"
# A run that differs in more settings than these is another one, not an earlier version.
_MOST_OTHER_SETTINGS = 3


@dataclasses.dataclass(frozen=True)
class PastRuns:
    """What there is of a cell's run.

    Args:
        complete: the newest that can be read, of this code and these data.
        interrupted: likewise, of those without a summary.
        damaged: complete ones that cannot be read, and why.
        why: in words, why nothing can be taken as it is; None where something can.
    """

    complete: Path | None = None
    interrupted: Path | None = None
    damaged: dict[Path, str] = dataclasses.field(default_factory=dict)
    why: str | None = None


NOT_YET = "not run yet"


def find_runs(run: CellRun, planned: Collection[str] = ()) -> PastRuns:
    """Look for runs with a cell's configuration.

    Runs of other code do not count, nor those older than a file they were given, nor those whose
    summary or predictions are damaged.

    Args:
        planned: `identity` of all runs of the command; a run of theirs is not an earlier version of
            this one.
    """
    complete = interrupted = None
    damaged: dict[Path, str] = {}
    why = None
    code = code_fingerprint()
    for folder in runs_of(run):
        if _recorded_code(folder) != code:
            why = f"the code has changed since {short_path(folder)}"
        elif (file := changed_input(folder, run.config)) is not None:
            why = f"{file} has changed since {short_path(folder)}"
        elif not is_complete(folder):
            interrupted = folder
        elif (problem := damage(folder)) is not None:
            damaged[folder] = problem
        else:
            complete = folder
    if complete is not None:
        return PastRuns(complete, interrupted, damaged)
    if damaged:
        folder, problem = list(damaged.items())[-1]
        why = f"{short_path(folder)} is damaged: {problem}"
    if interrupted is not None:
        why = f"{short_path(interrupted)} was interrupted, or failed"
    return PastRuns(None, interrupted, damaged, why or _other_settings(run, planned) or NOT_YET)


def newest_readable(run: CellRun) -> tuple[Path | None, str | None]:
    """The newest complete run of any code, and data, that can be read.

    Where all are damaged: the newest of them, and why it is no use.
    """
    found, problem = None, None
    for folder in filter(is_complete, runs_of(run)):
        damaged = damage(folder)
        if damaged is None or found is None or problem is not None:
            found, problem = folder, damaged
    return found, problem


def damage(folder: Path) -> str | None:
    """Why a complete run cannot be read; None: it can.

    A run with a value that is NaN or infinite is whole: done again it would come to the same.
    """
    files = [folder / "summary.json", *sorted((folder / "predictions").glob("*.parquet"))]
    return _damage(folder, tuple((str(file), file.stat().st_mtime_ns) for file in files))


@functools.lru_cache(maxsize=4096)
def _damage(folder: Path, modified: tuple[tuple[str, int], ...]) -> str | None:
    from toolkit.comparison import saved_run

    try:
        saved_run.load_run(folder)
    except NotFinite:
        return None
    except UserError as error:
        return str(error)
    return None


def set_aside(folder: Path) -> Path:
    """Move a damaged run where no command looks for runs, and return its new place.

    Raises:
        UserError: it cannot be moved.
    """
    place = folder.parent / "damaged" / folder.name
    number = 1
    while place.exists():
        number += 1
        place = place.with_name(f"{folder.name}-{number}")
    try:
        place.parent.mkdir(exist_ok=True)
        folder.rename(place)
    except OSError as error:
        raise UserError(f"{folder} is damaged and cannot be moved to {place}: {error}") from error
    return place


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
    return _identity(Path(run.config.output_dir) / run.recipe.stem, _settings(run.config))


def _identity(parent: Path, settings: dict[str, Any]) -> str:
    return f"{parent.resolve()} {json.dumps(settings, sort_keys=True)}"


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
    return _deciding(written)


@functools.lru_cache(maxsize=4096)
def _recorded(file: Path, modified: int) -> dict[str, Any] | None:
    """Settings that a run recorded; None where they cannot be read.

    Args:
        modified: time of the file in ns; what was read before is known as long as it is the same.
    """
    try:
        return _deciding(read_yaml(file))
    except UserError:  # a run killed before it wrote them
        return None


def _deciding(settings: dict[str, Any]) -> dict[str, Any]:
    """Without names, and without how a step's rows were divided where that was left to memory."""
    kept = {key: value for key, value in settings.items() if key not in NAMES}
    train = kept.get("train")
    if isinstance(train, dict) and train.get("auto_batch_size"):
        rows = train["batch_size"] * train["accumulation_steps"]
        divided = {
            "accumulation_steps": 1,
            "batch_size": rows if train["batch_tokens"] is None else 1,
        }
        kept["train"] = train | divided
    return kept


def _recorded_code(folder: Path) -> str | None:
    try:
        content = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    code: str | None = content.get("code")
    return code


def changed_input(folder: Path, config: RunConfig) -> str | None:
    """A file that the configuration names and that was written after the run began, if any."""
    began = (folder / "config.yaml").stat().st_mtime
    values = [value for value in _settings(config).values() if isinstance(value, str)]
    changed = (v for v in values if Path(v).is_file() and Path(v).stat().st_mtime > began)
    return next(changed, None)


def _other_settings(run: CellRun, planned: Collection[str]) -> str | None:
    """The run of the same recipe and seed that has the fewest other settings, if they are few.

    It may be what this cell once was; in words.
    """
    wanted = dict(leaves(_settings(run.config)))
    parent = Path(run.config.output_dir) / run.recipe.stem
    found: list[tuple[int, float, Path, list[str]]] = []
    for file in parent.glob("*/config.yaml"):
        time = file.stat().st_mtime_ns
        recorded = _recorded(file, time)
        if recorded is None or _identity(parent, recorded) in planned:
            continue
        theirs = dict(leaves(recorded))
        names = [key for key in wanted | theirs if wanted.get(key) != theirs.get(key)]
        if len(names) <= _MOST_OTHER_SETTINGS and "seed" not in names:
            changes = [f"{key} {wanted.get(key)} instead of {theirs.get(key)}" for key in names]
            found.append((len(names), -time, file.parent, changes))
    if not found:
        return None
    _, _, folder, changes = min(found, key=lambda one: one[:2])
    return f"settings have changed since {short_path(folder)}: {', '.join(changes)}"
