"""Read what a finished run left behind: its summary, settings and predictions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.config_files import read_yaml
from toolkit.errors import UserError
from toolkit.task_scores.predictions import NotFinite, Predictions
from toolkit.task_scores.tasks import TASKS

SCHEMA_VERSION = 1
_REQUIRED = (
    ("title", str),
    ("task", str),
    ("status", str),
    ("model", dict),
    ("data", dict),
    ("training", dict),
    ("environment", dict),
)


@dataclass(frozen=True)
class SavedRun:
    """A run that has been read and checked.

    Args:
        folder: run directory, or the file of predictions of a system without one.
        summary: as the run wrote it.
        test: its predictions on the split that is compared.
        config: its settings; empty where it has none.
    """

    folder: Path
    summary: dict[str, Any]
    test: Predictions
    config: dict[str, Any]

    @property
    def title(self) -> str:
        """How the run calls itself in tables."""
        return str(self.summary["title"])

    @property
    def run_id(self) -> str:
        """The run's own name, else that of its folder."""
        return str(self.summary.get("run_id") or self.folder.name)

    @property
    def task(self) -> str:
        """Such as "text-classification"."""
        return str(self.summary["task"])

    @property
    def seed(self) -> int | None:
        """Of initialisation, data order and dropout; None where the run has none."""
        seed: int | None = self.summary.get("seed")
        return seed

    @property
    def split(self) -> str:
        """Which split's predictions are compared."""
        return TASKS[self.task].split

    @property
    def measured(self) -> dict[str, Any]:
        """What the run recorded of its measures on that split."""
        return self.section(self.split)

    @property
    def label_names(self) -> list[str] | None:
        """Label names in the order of the label ids; None for tasks without."""
        names = self.section("data").get("label_names")
        return None if names is None else [str(name) for name in names]

    @property
    def train_examples(self) -> int | None:
        """Number of examples (of a language model, documents) the run was trained on."""
        data = self.summary["data"]
        counts = (data.get(f"train_{noun}") for noun in ("examples", "documents"))
        return next((int(count) for count in counts if count is not None), None)

    @property
    def recency(self) -> tuple[bool, int, str]:
        """Orders repeats of one run: complete ones last, and the one that ended last at the end."""
        file = self.folder / "summary.json"
        ended = file.stat().st_mtime_ns if file.is_file() else 0
        return self.summary["status"] == "complete", ended, self.run_id

    @property
    def max_seconds(self) -> float | None:
        """Budget of training time that the run was given; None: none."""
        train = self.config.get("train")
        seconds = train.get("max_seconds") if isinstance(train, dict) else None
        return None if seconds is None else float(seconds)

    def section(self, name: str) -> dict[str, Any]:
        """A part of the summary such as "model"; empty when the run recorded none."""
        value = self.summary.get(name)
        return value if isinstance(value, dict) else {}

    def data_hash(self, split: str) -> str | None:
        """Content hash of a split, where the run recorded one."""
        hashes = self.section("data").get("hashes")
        return hashes.get(split) if isinstance(hashes, dict) else None


class RunNotFinite(NotFinite):
    """What a run measured is NaN or infinite; `run` says which one."""

    def __init__(self, run: SavedRun, message: str) -> None:
        super().__init__(message)
        self.run = run


def load_run(folder: str | Path) -> SavedRun:
    """Read a run directory.

    Raises:
        UserError: names the file, and where it can the row, that is wrong; `NotFinite` where
            a value is NaN or infinite and the files are whole.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(
            f"{folder} is not a run directory. Give the folder of a finished run, the one that "
            "holds summary.json, such as results/runs/bert_sentiment/<run>."
        )
    summary = load_summary(folder / "summary.json")
    task = TASKS[summary["task"]]
    path = folder / "predictions" / f"{task.split}.parquet"
    predictions = task.read(path, summary)
    expected = summary["data"].get(f"{task.split}_examples")
    if expected is not None and expected != len(predictions.ids):
        raise UserError(
            f"{path} has {len(predictions.ids):,} rows, but summary.json says {expected:,} "
            f"{task.split} examples. The file is incomplete or belongs to another run; evaluate "
            "the run again."
        )
    settings = folder / "config.yaml"
    return SavedRun(folder, summary, predictions, read_yaml(settings) if settings.exists() else {})


def load_summary(path: Path) -> dict[str, Any]:
    """Read and check a `summary.json`.

    Raises:
        UserError: it is missing, no JSON, of another version, or lacks a part; says which.
    """
    if not path.is_file():
        raise UserError(
            f"{path} does not exist. Either {path.parent} is not a run directory or the run did "
            "not finish: resume it, or leave it out."
        )
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} is not valid JSON ({error}). It was cut off or edited; run again."
        ) from error
    if not isinstance(summary, dict) or "schema_version" not in summary:
        raise UserError(f"{path} is no summary of a run: it has no schema_version. Run again.")
    found = summary["schema_version"]
    if found != SCHEMA_VERSION:
        raise UserError(
            f"{path} has schema_version {found!r}; this version reads {SCHEMA_VERSION}. "
            "It was written by another version of the toolkit: run again with this one."
        )
    for name, kind in _REQUIRED:
        if not isinstance(summary.get(name), kind):
            raise UserError(
                f"{path}: '{name}' should be a {kind.__name__}, found {summary.get(name)!r}."
            )
    if summary["task"] not in TASKS:
        raise UserError(
            f"{path.parent} solves the task {summary['task']!r}, which this version cannot "
            f"compare. It compares runs of {', '.join(TASKS)}."
        )
    split = TASKS[summary["task"]].split
    if not isinstance(summary.get(split), dict):
        raise UserError(f"{path}: '{split}' should be a dict, found {summary.get(split)!r}.")
    return summary
