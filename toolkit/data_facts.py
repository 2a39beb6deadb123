"""What training data are like, in a few numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.batching import row_lengths
from toolkit.data.labels import class_counts

_LENGTHS = {"length": "tokens", "source_length": "source_tokens", "target_length": "target_tokens"}


def describe_data(data: Any) -> dict[str, Any]:
    """Rows per split, labels, lengths and what was cut, as far as the data have them.

    Args:
        data: ``train``, ``validation`` and perhaps ``test``, ``label_names`` and the ``summary``
            that data.json records.
    """
    splits = {name: getattr(data, name, None) for name in ("train", "validation", "test")}
    summary = getattr(data, "summary", {})
    facts: dict[str, Any] = {"source": summary["source"]} if "source" in summary else {}
    facts["rows"] = {name: len(rows) for name, rows in splits.items() if rows is not None}
    train, names = data.train, getattr(data, "label_names", None)
    if names and "label" in train.column_names:
        facts["labels_in_train"] = class_counts(train["label"][:], names)
    if "entities" in summary:
        facts["entities_in_train"] = summary["entities"]["train"]
    for column, name in _LENGTHS.items():
        if column in train.column_names and row_lengths(train) is not None:
            facts[f"{name}_in_train"] = _spread(np.asarray(train[column][:]))
    cut = summary.get("tokenization", {}).get("splits", {})
    if cut:
        facts["rows_cut"] = {name: _rows_cut(counts) for name, counts in cut.items()}
    return facts


def _spread(lengths: np.ndarray) -> dict[str, float]:
    return {
        "mean": round(float(lengths.mean()), 1),
        "95 %": round(float(np.quantile(lengths, 0.95)), 1),
        "max": int(lengths.max()),
    }


def _rows_cut(counts: dict[str, Any]) -> Any:
    """Of texts, or of sources and targets; windows leave nothing out."""
    if "source" in counts:
        return {side: counts[side]["rows_cut"] for side in ("source", "target")}
    return counts.get("rows_cut", 0)
