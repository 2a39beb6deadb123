"""Classification of texts and images: accuracy and macro F1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from toolkit.errors import UserError
from toolkit.stats import macro_f1_scores, macro_f1_statistics
from toolkit.task_scores.measures import Measure, Unit, ratio
from toolkit.task_scores.predictions import (
    NotFinite,
    Predictions,
    objects,
    read_table,
    texts_of,
)
from toolkit.task_scores.view import Breakdown, Classes, TaskView, length_breakdown

ACCURACY = Measure("accuracy", "accuracy", Unit.SHARE, ratio, counts_right=True)
MACRO_F1 = Measure("macro_f1", "macro F1", Unit.SHARE, macro_f1_scores)


def read(path: Path, summary: dict[str, Any]) -> Predictions:
    """Read a predictions file; label ids become names, so that their order does not matter.

    Raises:
        UserError: names file and row of what is wrong; `NotFinite` for probabilities that are no
            numbers.
    """
    names = _label_names(summary, path.parent.parent / "summary.json")
    table = read_table(path, ("id", "label", "prediction"))
    predicted = _label_ids(table, "prediction", len(names), path)
    labels = _label_ids(table, "label", len(names), path)
    fields: dict[str, NDArray[Any]] = {"prediction": objects([names[i] for i in predicted])}
    probabilities = _probabilities(table, len(names), path)
    if probabilities is not None:
        rows = np.arange(len(labels))
        fields["confidence"] = probabilities[rows, predicted]
        fields["truth_probability"] = probabilities[rows, labels]
    return Predictions(
        ids=[str(value) for value in table["id"].to_pylist()],
        inputs=texts_of(table, "text", "pair"),
        images=texts_of(table, "image"),
        truth=[names[i] for i in labels],
        fields=fields,
    )


def view(task: str, runs: Sequence[Predictions], summaries: Sequence[dict[str, Any]]) -> TaskView:
    """Runs on the same examples in the same order; label ids are those of the first run."""
    first = runs[0]
    names = [str(name) for name in summaries[0]["data"]["label_names"]]
    number = {name: i for i, name in enumerate(names)}
    labels = np.array([number[str(name)] for name in first.truth], dtype=np.int64)
    predictions = np.array(
        [[number[name] for name in run.fields["prediction"]] for run in runs], dtype=np.int64
    )
    right = predictions == labels

    def statistics(key: str, run: int) -> NDArray[np.float64]:
        if key == ACCURACY.key:
            return np.stack([right[run], np.ones(len(labels))], axis=-1)
        return macro_f1_statistics(labels, predictions[run], len(names))

    probability = np.stack([_field(run, "truth_probability") for run in runs])
    confidence = np.stack([_field(run, "confidence") for run in runs])
    counts = np.bincount(labels, minlength=len(names))
    most = int(counts.argmax())
    breakdowns = [_by_class(names, labels, right)]
    if first.inputs is not None:
        lengths = np.array([len(text) for text in first.inputs])
        breakdowns.append(
            length_breakdown(
                statistics, ACCURACY, len(runs), lengths, "length of the text in characters"
            )
        )
    listed = ", ".join(f"{name}: {count:,}" for name, count in zip(names, counts, strict=True))
    share = float(counts[most] / len(labels))
    return TaskView(
        task=task,
        noun="images" if task == "image-classification" else "texts",
        measures=[ACCURACY, MACRO_F1],
        statistics=statistics,
        truth=[names[i] for i in labels],
        answers=[[names[i] for i in row] for row in predictions],
        # Where both are right or both wrong, the surer one was better.
        quality=right + np.nan_to_num(probability),
        quality_label="right or wrong, then the probability of the truth",
        right=right,
        loss=-np.log(np.maximum(probability, np.finfo(np.float64).tiny)),
        confidence=confidence,
        classes=Classes(names, labels, predictions),
        breakdowns=breakdowns,
        facts=[f"Labels in the test set: {listed}."],
        single_answers={
            place: names[row[0]] for place, row in enumerate(predictions) if (row == row[0]).all()
        },
        chance=(f"always answering {names[most]!r}", share),
    )


def _field(run: Predictions, name: str) -> NDArray[np.float64]:
    found = run.fields.get(name)
    return np.full(len(run.ids), np.nan) if found is None else found


def _by_class(names: list[str], labels: NDArray[np.int64], right: NDArray[np.bool_]) -> Breakdown:
    present = [i for i in range(len(names)) if (labels == i).any()]
    return Breakdown(
        title="By class",
        note="The share of a class's examples that are right.",
        measure=ACCURACY,
        label="recall",
        names=[names[i] for i in present],
        examples=[int((labels == i).sum()) for i in present],
        values=np.array([right[:, labels == i].mean(axis=1) for i in present]),
    )


def _label_names(summary: dict[str, Any], path: Path) -> list[str]:
    found = summary["data"].get("label_names")
    if not isinstance(found, list):
        raise UserError(f"{path}: 'data.label_names' should be a list, found {found!r}.")
    names = [str(name) for name in found]
    if len(names) == 0 or len(set(names)) < len(names):
        raise UserError(f"{path}: data.label_names must be distinct names, found {names}.")
    return names


def _label_ids(table: pyarrow.Table, column: str, num_labels: int, path: Path) -> NDArray[np.int64]:
    if not pyarrow.types.is_integer(table.schema.field(column).type):
        raise UserError(
            f"{path}: column '{column}' holds {table.schema.field(column).type}, "
            "expected label ids (whole numbers)."
        )
    values: NDArray[np.int64] = table[column].to_numpy().astype(np.int64)
    wrong = np.flatnonzero((values < 0) | (values >= num_labels))
    if len(wrong) > 0:
        row = int(wrong[0])
        raise UserError(
            f"{path}, row {row}: '{column}' is {values[row]}, but the run has {num_labels} labels, "
            f"so it should be from 0 to {num_labels - 1}."
        )
    return values


def _probabilities(table: pyarrow.Table, num_labels: int, path: Path) -> NDArray[np.float64] | None:
    if "probabilities" not in table.column_names or table["probabilities"].null_count > 0:
        return None
    lengths = pyarrow.compute.list_value_length(table["probabilities"]).to_numpy()
    wrong = np.flatnonzero(lengths != num_labels)
    if len(wrong) > 0:
        row = int(wrong[0])
        raise UserError(f"{path}, row {row}: {lengths[row]} probabilities for {num_labels} labels.")
    flat = pyarrow.compute.list_flatten(table["probabilities"]).to_numpy().astype(np.float64)
    values: NDArray[np.float64] = flat.reshape(-1, num_labels)
    not_finite = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(not_finite) > 0:
        row = int(not_finite[0])
        raise NotFinite(
            f"{path}, row {row}: 'probabilities' are {values[row].tolist()} "
            f"({len(not_finite):,} rows are not finite). The run has failed; leave it out."
        )
    outside = np.flatnonzero(~((values >= 0) & (values <= 1 + 1e-6)).all(axis=1))
    if len(outside) > 0:
        row = int(outside[0])
        raise UserError(
            f"{path}, row {row}: probabilities {values[row].tolist()}, expected numbers from 0 "
            "to 1."
        )
    return values
