"""Which runs form a learning curve: the same method on other numbers of training examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import UserError
from toolkit.run_results import SavedRun
from toolkit.stats import Estimate, accuracy_estimate


@dataclass(frozen=True)
class CurvePoint:
    """Accuracy of a method trained on so many labelled examples."""

    train_examples: int
    accuracy: Estimate
    run: SavedRun


@dataclass(frozen=True)
class CurveSeries:
    """One method's points, by number of training examples."""

    name: str
    points: list[CurvePoint]


def curve_series(
    runs: Sequence[SavedRun],
    titles: Sequence[str],
    right: NDArray[np.bool_],
    others: Sequence[SavedRun],
    others_right: NDArray[np.bool_],
) -> list[CurveSeries]:
    """One series per method that was trained on at least two numbers of examples.

    `runs` are those of the table with their titles, `others` the further runs; `right` and
    `others_right` say what they got right, shape (runs, examples). Raises UserError for two runs
    at one place and for a run that does not say on how many examples it was trained.
    """
    if not others:
        return []
    series: dict[str, list[CurvePoint]] = {}
    for run, title, row in zip(runs, titles, right, strict=True):
        series.setdefault(title, []).append(_curve_point(run, row))
    for run, row in zip(others, others_right, strict=True):
        name = _series_name(run, runs, titles)
        points = series.setdefault(name, [])
        point = _curve_point(run, row)
        twin = next((p for p in points if p.train_examples == point.train_examples), None)
        if twin is not None:
            raise UserError(
                f"The learning curve of {name} has two runs with {point.train_examples:,} training "
                f"examples: {twin.run.folder} and {run.folder}. Give one of them."
            )
        points.append(point)
    return [
        CurveSeries(name, sorted(points, key=lambda point: point.train_examples))
        for name, points in series.items()
        if len(points) > 1
    ]


def _series_name(run: SavedRun, runs: Sequence[SavedRun], titles: Sequence[str]) -> str:
    """The compared run whose method this run shares; the run's own title when there is none."""
    same = [place for place, other in enumerate(runs) if _method(other) == _method(run)]
    if len(same) > 1:
        # Settings beyond the method (a rank, a learning rate) are told apart by the title.
        same = [place for place in same if runs[place].title == run.title]
    if len(same) == 1:
        return titles[same[0]]
    return run.title if run.title not in titles else f"{run.title} ({run.run_id})"


def _curve_point(run: SavedRun, right: NDArray[np.bool_]) -> CurvePoint:
    if run.train_examples is None:
        raise UserError(
            f"{run.folder / 'summary.json'} has no data.train_examples, so the run has no place on "
            "a learning curve."
        )
    return CurvePoint(run.train_examples, accuracy_estimate(right), run)


def _method(run: SavedRun) -> tuple[object, ...]:
    """What stays the same when only the number of training examples changes."""
    model = run.section("model")
    keys = ("name", "implementation", "architecture", "method")
    return (run.summary.get("recipe"), *(model.get(key) for key in keys))
