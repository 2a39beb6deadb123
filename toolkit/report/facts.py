"""What runs recorded of data, settings and machine: once where it is equal, else by run."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.comparison.compare import Comparison
from toolkit.comparison.saved_run import SavedRun
from toolkit.git_state import git_state
from toolkit.report import wording

_VERSION_KEYS = ("python", "torch", "transformers")
_LIBRARIES = ("numpy", "scipy", "statsmodels", "scikit-learn", "sacrebleu")


@dataclass(frozen=True)
class Fact:
    """One thing that every run recorded (`value`) or that differs between them (`by_run`)."""

    name: str
    value: str | None
    by_run: dict[str, str]


def data_facts(comparison: Comparison) -> list[Fact]:
    """Data set, sizes, hashes and what chose the model."""
    runs = titled_runs(comparison)

    def of_data(key: str) -> list[tuple[str, object]]:
        return [(title, run.section("data").get(key)) for title, run in runs]

    facts = [_fact("data set", of_data("dataset"))]
    for split in ("train", "validation", "test"):
        facts.append(_fact(f"{split} examples", of_data(f"{split}_examples")))
        hashes = [(title, run.data_hash(split)) for title, run in runs]
        facts.append(_fact(f"{split} hash (SHA-256)", hashes))
    selection = [(title, run.section("training").get("selection")) for title, run in runs]
    facts.append(_fact("model kept", selection))
    padding = [(title, run.section("training").get("padding")) for title, run in runs]
    facts.append(_fact("batches", padding))
    energy = [(title, run.section("training").get("energy_source")) for title, run in runs]
    facts.append(_fact("energy read from", energy))
    return [fact for fact in facts if fact.value != wording.MISSING]


def machine_facts(comparison: Comparison) -> list[Fact]:
    """Hardware, then versions: the former decides what times mean."""
    runs = titled_runs(comparison)
    keys: dict[str, None] = {}
    for _, run in runs:
        keys.update(dict.fromkeys(run.section("environment")))
    ordered = [key for key in keys if key not in _VERSION_KEYS]
    ordered += [key for key in _VERSION_KEYS if key in keys]
    return [
        _fact(
            key.replace("_", " "),
            [(title, run.section("environment").get(key)) for title, run in runs],
        )
        for key in ordered
    ]


def report_facts() -> list[Fact]:
    """What computed the report itself."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _LIBRARIES)
    git = git_state()
    commit = "not a checkout" if git is None else str(git["commit"]) + " (changed)" * git["dirty"]
    return [Fact("report made with", versions, {}), Fact("code of the report", commit, {})]


def titled_runs(comparison: Comparison) -> list[tuple[str, SavedRun]]:
    """All compared runs, each with its method's title and, among several, its seed."""
    return [
        (row.title if len(row.method.runs) == 1 else f"{row.title}, seed {run.seed}", run)
        for row in comparison.rows
        for run in row.method.runs
    ]


def _fact(name: str, runs: Sequence[tuple[str, object]]) -> Fact:
    written = {title: _written(value) for title, value in runs}
    values = set(written.values())
    if len(values) == 1:
        return Fact(name, values.pop(), {})
    return Fact(name, None, written)


def _written(value: object) -> str:
    """A recorded value in words; lists and small dictionaries on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_written(part)}" for key, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(_written, value)) or "none"
    return wording.MISSING if value is None else str(value)
