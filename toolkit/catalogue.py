"""What is known of every architecture: the facts and comparisons that the last check recorded.

They stand in `toolkit/parity_status.json`, so that they can be told at once: nothing here imports
torch or transformers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import scratch_models
from scratch_models.hub.architecture import Architecture
from toolkit.disk import write_whole
from toolkit.errors import UserError, first_line
from toolkit.fingerprint import fingerprint
from toolkit.json_values import without_nan

STATUS_FILE = Path(__file__).with_name("parity_status.json")
SCHEMA = 1
HALF_PRECISION = "half precision"
RANDOM_CONFIGS = "random configs"
Weights = Literal["random", "checkpoint"]


@dataclass
class StageResult:
    """The comparisons of one stage (forward, gradients, …) of one head.

    Args:
        comparisons: how many values, or sets of values, were compared.
        failed: how many of them were further apart than allowed.
        difference: the largest absolute difference; infinite where something was missing.
        tolerance: what was allowed there; 0 where every bit must be equal.
    """

    comparisons: int = 0
    failed: int = 0
    difference: float = 0.0
    tolerance: float = 0.0

    def add(self, difference: float, tolerance: float, passed: bool) -> None:
        """Count one comparison."""
        difference = math.inf if math.isnan(difference) else difference
        if self.comparisons == 0 or difference > self.difference:
            self.difference, self.tolerance = difference, tolerance
        self.comparisons += 1
        self.failed += not passed


@dataclass
class Comparison:
    """One architecture seen equal, or not, on one kind of weights.

    Args:
        weights: `random`, or `checkpoint` for weights that somebody trained.
        name: of the checkpoint; `random configs` for random ones.
        date: of the check, as 2026-01-31.
        code: `code_of` the architecture that was checked.
        versions: of torch and transformers.
        models: how many models (config and head) were compared.
        heads: for every head its stages.
        failures: the first comparisons that failed, in words.
        missing: weights the checkpoint does not hold: equal on both sides, but random.
    """

    weights: Weights
    name: str
    date: str
    code: str
    versions: dict[str, str]
    models: int = 0
    heads: dict[str, dict[str, StageResult]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def comparisons(self) -> int:
        """How many values were compared."""
        return sum(stage.comparisons for stage in self._stages())

    @property
    def failed(self) -> int:
        """How many of them were further apart than allowed."""
        return sum(stage.failed for stage in self._stages())

    @property
    def largest(self) -> StageResult:
        """The stage with the largest difference in single precision."""
        found = self._stages(without=HALF_PRECISION)
        return max(found, key=lambda stage: stage.difference, default=StageResult())

    def _stages(self, without: str = "") -> list[StageResult]:
        return [
            stage
            for stages in self.heads.values()
            for name, stage in stages.items()
            if name != without
        ]


@dataclass
class Status:
    """What the checks of one architecture recorded.

    Args:
        family: HuggingFace's name of the architecture ("Marian"); empty without counterpart.
        huggingface: HuggingFace's class of every head, None without one.
        parameters: of every head at the reference size.
        seen: the comparisons, random configs first.
    """

    family: str = ""
    huggingface: dict[str, str | None] = field(default_factory=dict)
    parameters: dict[str, int] = field(default_factory=dict)
    seen: list[Comparison] = field(default_factory=list)

    @property
    def known(self) -> bool:
        """False before the first check."""
        return bool(self.huggingface)

    @property
    def has_counterpart(self) -> bool:
        """True if transformers has a class that one of ours equals."""
        return any(self.huggingface.values())

    @property
    def failed(self) -> int:
        """How many comparisons failed, over all weights."""
        return sum(comparison.failed for comparison in self.seen)

    def record(self, comparison: Comparison) -> None:
        """Put a comparison in the place of the older one on the same weights."""
        key = (comparison.weights, comparison.name)
        others = [old for old in self.seen if (old.weights, old.name) != key]
        self.seen = sorted([*others, comparison], key=lambda c: (c.weights != "random", c.name))

    def seen_in_words(self) -> str:
        """Which weights it was compared on; random ones are never called real."""
        if self.known and not self.has_counterpart:
            return "no counterpart to equal"
        real = ", ".join(c.name for c in self.seen if c.weights == "checkpoint")
        random = any(c.weights == "random" for c in self.seen)
        if real:
            return f"real weights: {real}" + (f"; {RANDOM_CONFIGS}" if random else "")
        return f"{RANDOM_CONFIGS} only" if random else "not checked yet"


def read_status(file: Path = STATUS_FILE) -> dict[str, Status]:
    """The recorded status by model type; empty where nothing was recorded yet.

    Raises:
        UserError: the file cannot be read or is none of ours.
    """
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise UserError(
                f"{file}: layout {content['schema']!r} where {SCHEMA} is read. "
                "Record it again: toolkit models --check --write"
            )
        return {name: _status(entry) for name, entry in content["architectures"].items()}
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{file} holds no parity status ({type(error).__name__}: {first_line(error)}). "
            "Record it again: toolkit models --check --write"
        ) from error


def write_status(statuses: Mapping[str, Status], file: Path = STATUS_FILE) -> None:
    """Write the whole file or nothing.

    Raises:
        UserError: the file cannot be written.
    """
    content = {
        "schema": SCHEMA,
        "architectures": {name: asdict(statuses[name]) for name in sorted(statuses)},
    }
    text = json.dumps(without_nan(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        write_whole(file, text)
    except OSError as error:
        raise UserError(f"{file} cannot be written: {error.strerror}") from error


def _status(entry: dict[str, Any]) -> Status:
    return Status(**{**entry, "seen": [_comparison(seen) for seen in entry["seen"]]})


def _comparison(entry: dict[str, Any]) -> Comparison:
    heads = {
        head: {name: _stage(stage) for name, stage in stages.items()}
        for head, stages in entry["heads"].items()
    }
    return Comparison(**{**entry, "heads": heads})


def _stage(entry: dict[str, Any]) -> StageResult:
    stage = StageResult(**entry)
    if stage.difference is None:  # JSON has no infinity
        stage.difference = math.inf
    return stage


def code_of(architecture: Architecture, root: Path | None = None) -> str:
    """A hash of everything the architecture is made of: its package, what that imports, the layers.

    Args:
        architecture: whose code.
        root: the folder that holds `scratch_models`; default: where it was imported from.
    """
    root = root or Path(scratch_models.__file__).resolve().parents[1]
    packages = sorted(_packages(root, architecture.package.replace(".", "/")))
    return fingerprint(root, [*packages, "scratch_models/layers", "scratch_models/hub"])


def _packages(root: Path, folder: str) -> set[str]:
    """A package and those beside it that it builds on, directly or not."""
    found: set[str] = set()
    waiting = [folder]
    while waiting:
        folder = waiting.pop()
        if folder in found:
            continue
        found.add(folder)
        for file in (root / folder).rglob("*.py"):
            waiting += _imported_packages(file.read_text(encoding="utf-8"))
    return found


def _imported_packages(code: str) -> Iterable[str]:
    for home, name in re.findall(r"\bscratch_models\.(models|baselines)\.(\w+)", code):
        yield f"scratch_models/{home}/{name}"


def reference_head(architecture: Architecture) -> str:
    """The head whose parameters are those of the reference: with its labels, where it has some."""
    labelled = "image-classification"
    if "num_labels" in architecture.reference_config and labelled in architecture.classes:
        return labelled
    return "model" if "model" in architecture.classes else next(iter(architecture.classes))
