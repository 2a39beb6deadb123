"""How the methods trained: curves, times to targets, implementations, the learning curve."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from toolkit.comparison.compare import Comparison
from toolkit.plots import Band
from toolkit.report.content import Report
from toolkit.report.curve_data import CurvePicture, curve_pictures, shown_points
from toolkit.report.json_parts.methods import estimate_values

_DIGITS = 7  # of a curve's points


def curves_values(comparison: Comparison) -> list[dict[str, Any]]:
    """Every picture of a training curve, with the points that it draws."""
    return [_picture(picture) for picture in curve_pictures(comparison)]


def _picture(picture: CurvePicture) -> dict[str, Any]:
    lines = len(picture.bands)
    return {
        "picture": f"{picture.file}.svg",
        "value": picture.value,
        "against": picture.axis,
        "target": picture.target,
        "methods": [_band(band, lines) for band in picture.bands],
    }


def _band(band: Band, lines: int) -> dict[str, Any]:
    kept = shown_points(band, lines)
    values = {"at": band.x, "mean": band.mean, "low": band.low, "high": band.high}
    return {
        "title": band.name,
        "runs": band.runs,
        "points_logged": len(band.x),
        **{
            name: [float(f"{number:.{_DIGITS}g}") for number in np.asarray(values_, float)[kept]]
            for name, values_ in values.items()
        },
    }


def targets_values(report: Report) -> dict[str, Any] | None:
    """Where every seed first reached each target; None where nothing was logged."""
    found = report.targets
    if found is None:
        return None
    if found.left_out is not None:
        return {"left_out": found.left_out}
    titles = [row.title for row in report.comparison.rows]
    return {
        "metric": f"validation {found.metric}",
        "best_that_all_reached": found.common,
        "reached": [
            {
                "target": target,
                "by": {
                    title: None
                    if one is None
                    else [None if point is None else asdict(point) for point in one.points]
                    for title, one in zip(titles, reached, strict=True)
                },
            }
            for target, reached in found.reached.items()
        ],
    }


def implementations_values(report: Report) -> list[dict[str, Any]]:
    """Pairs of two implementations of one model, seed by seed."""
    rows = report.comparison.rows
    return [
        {
            "first": rows[twins.first].title,
            "second": rows[twins.second].title,
            "median_speed_ratio": twins.median_speed_ratio,
            "seeds": [asdict(seed) for seed in twins.seeds],
        }
        for twins in report.twins
    ]


def learning_curve_values(comparison: Comparison) -> list[dict[str, Any]]:
    """The deciding measure against the number of training examples."""
    return [
        {
            "name": series.name,
            "points": [
                {
                    "train_examples": point.train_examples,
                    "runs": [
                        {"run_id": run.run_id, "seed": run.seed,
                         "command": run.summary.get("command")}
                        for run in point.runs
                    ],
                    comparison.primary.key: estimate_values(point.estimate),
                }
                for point in series.points
            ],
        }
        for series in comparison.curve
    ]  # fmt: skip
