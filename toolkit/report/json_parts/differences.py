"""Where the methods differ: confusions, parts of the test set, examples."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from toolkit.comparison.compare import Comparison
from toolkit.report.confusions import confusions
from toolkit.report.content import Report
from toolkit.task_scores.view import Breakdown


def confusions_values(comparison: Comparison) -> dict[str, Any] | None:
    """Counts of truth and answer, summed over seeds; None where there are no classes."""
    found = confusions(comparison)
    if found is None:
        return None
    titles = [row.title for row in found.rows]
    if found.matrices is None:
        frequent = [
            {"truth": one.truth, "answer": one.answer,
             "counts": dict(zip(titles, one.counts, strict=True))}
            for one in found.frequent
        ]  # fmt: skip
        return {"classes": found.names, "most_frequent": frequent}
    matrices = [matrix.tolist() for matrix in found.matrices]
    return {
        "classes": found.names,
        "rows_are": "truth",
        "counts": dict(zip(titles, matrices, strict=True)),
    }


def breakdown_values(comparison: Comparison, found: Breakdown) -> dict[str, Any]:
    """A measure on parts of the test set, means over seeds."""
    return {
        "title": found.title,
        "measure": found.label,
        "note": found.note,
        "parts": [
            {
                "name": name,
                "examples": examples,
                "values": {
                    row.title: float(values[row.method.places].mean()) for row in comparison.rows
                },
            }
            for name, examples, values in zip(
                found.names, found.examples, found.values, strict=True
            )
        ],
    }


def examples_values(report: Report) -> dict[str, Any] | list[dict[str, Any]]:
    """The examples that are shown, or why there are none."""
    if report.examples is None:
        return {"left_out": report.examples_left_out}
    return [asdict(group) for group in report.examples]
