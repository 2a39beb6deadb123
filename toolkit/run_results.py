"""Read what a finished run left behind: its summary and its predictions on the test set."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.parquet
from numpy.typing import NDArray

from toolkit.config import read_yaml
from toolkit.errors import UserError

SCHEMA_VERSION = 1
COMPARABLE_TASKS = ("text-classification", "image-classification")
"""Their runs hold labels and predictions of test examples, which is what is compared so far."""
_REQUIRED = (
    ("title", str),
    ("task", str),
    ("status", str),
    ("model", dict),
    ("data", dict),
    ("data.label_names", list),
    ("training", dict),
    ("test", dict),
    ("environment", dict),
)


@dataclass(frozen=True)
class Predictions:
    """Predictions on the test set, one entry per example, in the order of the file.

    `labels` and `predictions` are label ids; `confidence` is the probability the model gave to its
    own prediction, NaN where the run did not record one. `texts` or `images` (file and row of
    each) is None when not recorded.
    """

    ids: list[str]
    texts: list[str] | None
    images: list[str] | None
    labels: NDArray[np.int64]
    predictions: NDArray[np.int64]
    confidence: NDArray[np.float64]


@dataclass(frozen=True)
class SavedRun:
    """A run directory that has been read and checked; `config` is empty where it has none."""

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
    def label_names(self) -> list[str]:
        """Label names in the order of the label ids."""
        return [str(name) for name in self.summary["data"]["label_names"]]

    @property
    def train_examples(self) -> int | None:
        """Number of labelled examples the run was trained on."""
        count = self.summary["data"].get("train_examples")
        return None if count is None else int(count)

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
        return (self.section("data").get("hashes") or {}).get(split)


def load_run(folder: str | Path) -> SavedRun:
    """Read a run directory; a UserError names the file and row that is wrong."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(
            f"{folder} is not a run directory. Give the folder of a finished run, the one that "
            "holds summary.json, such as results/runs/bert_sentiment/<run>."
        )
    summary = _load_summary(folder / "summary.json")
    num_labels = len(summary["data"]["label_names"])
    test = _load_predictions(folder / "predictions" / "test.parquet", num_labels)
    expected = summary["data"].get("test_examples")
    if expected is not None and expected != len(test.ids):
        raise UserError(
            f"{folder / 'predictions' / 'test.parquet'} has {len(test.ids):,} rows, but "
            f"summary.json says {expected:,} test examples. The file is incomplete or belongs to "
            "another run; evaluate the run again."
        )
    settings = folder / "config.yaml"
    return SavedRun(folder, summary, test, read_yaml(settings) if settings.exists() else {})


def _load_summary(path: Path) -> dict[str, Any]:
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
    if not isinstance(summary, dict) or summary.get("schema_version") != SCHEMA_VERSION:
        found = summary.get("schema_version") if isinstance(summary, dict) else None
        raise UserError(
            f"{path} has schema_version {found!r}; this version reads {SCHEMA_VERSION}. "
            "It was written by another version of the toolkit: run again with this one."
        )
    task = summary.get("task")
    if isinstance(task, str) and task not in COMPARABLE_TASKS:
        raise UserError(
            f"{path.parent} solves the task {task!r}. Only runs of "
            f"{' and '.join(COMPARABLE_TASKS)} can be compared so far."
        )
    for name, kind in _REQUIRED:
        value: Any = summary
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, kind):
            raise UserError(f"{path}: '{name}' should be a {kind.__name__}, found {value!r}.")
    names = [str(name) for name in summary["data"]["label_names"]]
    if len(names) == 0 or len(set(names)) < len(names):
        raise UserError(f"{path}: data.label_names must be distinct names, found {names}.")
    return summary


def _load_predictions(path: Path, num_labels: int) -> Predictions:
    if not path.is_file():
        raise UserError(
            f"{path} does not exist: the run kept no predictions for its test set, and without "
            "them two runs cannot be compared example by example. Evaluate the run again."
        )
    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise UserError(
            f"{path} cannot be read as parquet ({str(error).strip()}). "
            "It was probably cut off while it was written: evaluate the run again."
        ) from error
    for column in ("id", "label", "prediction"):
        if column not in table.column_names:
            raise UserError(
                f"{path} has no column '{column}'. Columns found: {', '.join(table.column_names)}."
            )
        empty = table[column].is_null().to_numpy()
        if empty.any():
            raise UserError(f"{path}, row {int(np.argmax(empty))}: '{column}' is empty.")
    if table.num_rows == 0:
        raise UserError(f"{path} has no rows: there is nothing to compare.")

    ids = [str(value) for value in table["id"].to_pylist()]
    _check_unique(ids, path)
    predictions = _label_ids(table, "prediction", num_labels, path)
    return Predictions(
        ids=ids,
        texts=_strings(table, "text", "pair"),
        images=_strings(table, "image"),
        labels=_label_ids(table, "label", num_labels, path),
        predictions=predictions,
        confidence=_confidence(table, predictions, num_labels, path),
    )


def _check_unique(ids: list[str], path: Path) -> None:
    repeated = [(value, count) for value, count in Counter(ids).items() if count > 1]
    if repeated:
        value, count = repeated[0]
        rows = [row for row, other in enumerate(ids) if other == value]
        raise UserError(
            f"{path} holds the id {value!r} {count} times (rows {rows[0]} and {rows[1]}); "
            f"{len(repeated)} ids are repeated in all. Every test example must be there exactly "
            "once: evaluate the run again."
        )


def _label_ids(table: pyarrow.Table, column: str, num_labels: int, path: Path) -> NDArray[np.int64]:
    if not pyarrow.types.is_integer(table.schema.field(column).type):
        raise UserError(
            f"{path}: column '{column}' holds {table.schema.field(column).type}, "
            "expected label ids (whole numbers)."
        )
    values = table[column].to_numpy().astype(np.int64)
    wrong = np.flatnonzero((values < 0) | (values >= num_labels))
    if len(wrong) > 0:
        row = int(wrong[0])
        raise UserError(
            f"{path}, row {row}: '{column}' is {values[row]}, but the run has {num_labels} labels, "
            f"so it should be from 0 to {num_labels - 1}."
        )
    return values


def _strings(table: pyarrow.Table, *columns: str) -> list[str] | None:
    """The first column as text, with what stands in the further ones that are there."""
    if columns[0] not in table.column_names:
        return None
    shown = [name for name in columns if name in table.column_names]
    rows = zip(*(table[name].to_pylist() for name in shown), strict=True)
    return [" | ".join("" if value is None else str(value) for value in row) for row in rows]


def _confidence(
    table: pyarrow.Table, predictions: NDArray[np.int64], num_labels: int, path: Path
) -> NDArray[np.float64]:
    if "probabilities" not in table.column_names or table["probabilities"].null_count > 0:
        return np.full(len(predictions), np.nan)
    lengths = pyarrow.compute.list_value_length(table["probabilities"]).to_numpy()
    wrong = np.flatnonzero(lengths != num_labels)
    if len(wrong) > 0:
        row = int(wrong[0])
        raise UserError(f"{path}, row {row}: {lengths[row]} probabilities for {num_labels} labels.")
    flat = pyarrow.compute.list_flatten(table["probabilities"]).to_numpy().astype(np.float64)
    return flat.reshape(-1, num_labels)[np.arange(len(predictions)), predictions]
