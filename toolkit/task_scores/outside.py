"""Predictions of somebody else's system: a file of answers instead of a run.

What the system was asked and what is right comes from a run on the same test set; the file says
what it answered.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from toolkit.console import notify
from toolkit.data.files import Table, read_table
from toolkit.errors import UserError
from toolkit.task_scores.outside_answers import FORMATS, label_ids
from toolkit.task_scores.outside_rows import Tested, match_rows, with_ids_as_rows
from toolkit.task_scores.predictions import Predictions
from toolkit.task_scores.tasks import TASKS

METHOD = "outside predictions"
"""In the place of a run's training method."""
_SCHEMA_VERSION = 1
# What a run's summary says about its test set alone, or how it is scored.
_DATA = ("dataset", "label_names", "language", "source_language", "target_language", "tokens",
         "word")  # fmt: skip


def read_outside(
    path: str | Path, like: Tested, title: str | None = None
) -> tuple[Predictions, dict[str, Any]]:
    """Read a file of answers to the examples that a run was tested on.

    One row per example, as csv, tsv, json, json lines or parquet, each also gzipped. Rows are
    matched by the column `id` (of the run's predictions file), or without it by what was asked, in
    a column `text`, `source`, `question` or `image`. `prediction` holds the label's name (or its id
    in the run's order, where all are ids and no label is called by a number), the
    translation, the answer ("" for none) or the tags (separated by spaces, or a list); of a
    language model there are `nll` (nats, of all that the run scored too) and `tokens` instead. A
    column with the truth, such as `label` or `reference`, is compared with the run's.

    Args:
        like: the run; the predictions come in the order of its test set.
        title: of the system; None: the file's name.

    Returns:
        The predictions, and a summary as runs have it, with the values of the task's measures.

    Raises:
        UserError: whatever is wrong with the file; names row, value, and what was expected.
    """
    path = Path(path)
    task = str(like.summary["task"])
    if task not in FORMATS:
        raise UserError(
            f"{path}: predictions from outside cannot be compared in the task {task!r}; they can "
            f"in {', '.join(FORMATS)}."
        )
    form = FORMATS[task]
    table = with_ids_as_rows(read_table(path), like)
    rows = match_rows(table, form.inputs, like)
    form.check_truth(table, rows, like)
    predictions = replace(like.test, fields=form.fields(table, rows, like))
    summary = _summary(path, title, predictions, like)
    if "label_names" in summary["data"] and "prediction" in table.columns:
        _tell_label_ids(table, like, summary)
    return predictions, summary


def _tell_label_ids(table: Table, like: Tested, summary: dict[str, Any]) -> None:
    """Another system may number its labels in another order: what was assumed must be seen."""
    ids = label_ids(table, "prediction", like)
    if ids is None:
        return
    summary["data"]["label_ids"] = ids
    listed = ", ".join(f"{number} = {name}" for number, name in ids.items())
    notify(f"{table.source}: the predictions are label ids, read in the run's order: {listed}.")


def _summary(
    path: Path, title: str | None, predictions: Predictions, like: Tested
) -> dict[str, Any]:
    task, data = str(like.summary["task"]), like.summary["data"]
    test_hash = (data.get("hashes") or {}).get("test")
    summary: dict[str, Any] = {
        "schema_version": _SCHEMA_VERSION,
        "title": title or path.name.removesuffix(".gz").rsplit(".", 1)[0],
        "task": task,
        "status": "complete",
        "model": {"name": path.name, "method": METHOD},
        "data": {
            **{name: data[name] for name in _DATA if name in data},
            "test_examples": len(predictions.ids),
            "hashes": {} if test_hash is None else {"test": test_hash},
        },
        "training": {},
        "environment": {},
    }
    return summary | {"test": _scores(task, predictions, summary, like)}


def _scores(
    task: str, predictions: Predictions, summary: dict[str, Any], like: Tested
) -> dict[str, Any]:
    """The measures of the task as the run's summary holds them: in its form, by its definitions."""
    view = TASKS[task].view(task, [predictions], [summary])
    scores: dict[str, Any] = {}
    for measure in view.measures:
        value = float(measure.score(view.statistics(measure.key, 0).sum(0)))
        recorded = like.summary["test"].get(measure.key)
        scores[measure.key] = value
        if isinstance(recorded, dict):
            kept = {name: recorded[name] for name in ("n", "signature") if name in recorded}
            scores[measure.key] = {"value": value, **kept}
    return scores
