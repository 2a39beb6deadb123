"""Which runs form a learning curve: the same method on other numbers of training examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.comparison.methods import Method, settings
from toolkit.comparison.saved_run import SavedRun
from toolkit.comparison.scores import Scores
from toolkit.errors import UserError
from toolkit.stats import Estimate
from toolkit.task_scores.view import TaskView

# What may differ between the points of a line; the evaluation rhythm follows the number of steps.
_SIZE = ("train_size", "seed")


@dataclass(frozen=True)
class CurvePoint:
    """The deciding measure of a method trained on so many labelled examples, over its seeds."""

    train_examples: int
    estimate: Estimate
    runs: list[SavedRun]


@dataclass(frozen=True)
class CurveSeries:
    """One method's points, by number of training examples."""

    name: str
    points: list[CurvePoint]


def curve_series(
    methods: Sequence[Method], others: Sequence[SavedRun], scores: Scores, view: TaskView
) -> list[CurveSeries]:
    """One series per method that was trained on at least two numbers of examples.

    `methods` are those of the table, `others` the further runs, whose places in `scores` follow
    theirs.

    Raises:
        UserError: two runs with one seed at one place, or a run that does not say on how many
            examples it was trained.
    """
    if not others:
        return []
    first_other = sum(len(method.runs) for method in methods)
    series: dict[str, dict[int, list[tuple[SavedRun, int]]]] = {}
    for method in methods:
        for run, place in zip(method.runs, method.places, strict=True):
            _add(series.setdefault(method.title, {}), method.title, run, place)
    for number, run in enumerate(others):
        name = _series_name(run, methods)
        _add(series.setdefault(name, {}), name, run, first_other + number)
    return [
        CurveSeries(
            name, [_point(size, found, scores, view) for size, found in sorted(points.items())]
        )
        for name, points in series.items()
        if len(points) > 1
    ]


def curve_cautions(methods: Sequence[Method], others: Sequence[SavedRun]) -> list[str]:
    """Runs on a method's line that differ in more than the number of training examples."""
    cautions = []
    for run in others:
        name = _series_name(run, methods)
        method = next((method for method in methods if method.title == name), None)
        if method is None or not run.config or not method.runs[0].config:
            continue
        theirs, own = settings(method.runs[0], *_SIZE), settings(run, *_SIZE)
        names = [key for key in own | theirs if str(own.get(key)) != str(theirs.get(key))]
        if names:
            listed = ", ".join(
                f"{key} {own.get(key)} instead of {theirs.get(key)}" for key in names
            )
            cautions.append(
                f"The learning curve of {name} has a point with other settings "
                f"({run.train_examples or 0:,} examples): {listed}."
            )
    return cautions


def _add(
    points: dict[int, list[tuple[SavedRun, int]]], name: str, run: SavedRun, place: int
) -> None:
    if run.train_examples is None:
        raise UserError(
            f"{run.folder / 'summary.json'} has no data.train_examples (of a language model, "
            "data.train_documents), so the run has no place on a learning curve."
        )
    here = points.setdefault(run.train_examples, [])
    twin = next((other for other, _ in here if other.seed == run.seed), None)
    if twin is not None:
        raise UserError(
            f"The learning curve of {name} has two runs with {run.train_examples:,} training "
            f"examples and seed {run.seed}: {twin.folder} and {run.folder}. Give one of them."
        )
    here.append((run, place))


def _point(
    size: int, found: list[tuple[SavedRun, int]], scores: Scores, view: TaskView
) -> CurvePoint:
    places = [place for _, place in found]
    alike = all(view.answers[place] == view.answers[places[0]] for place in places)
    estimate = scores.estimate(places, as_one_run=alike)
    return CurvePoint(size, estimate, [run for run, _ in found])


def _series_name(run: SavedRun, methods: Sequence[Method]) -> str:
    """The compared method that this run shares; the run's own title when there is none."""
    same = [method for method in methods if _kind(method.runs[0]) == _kind(run)]
    if len(same) > 1:
        # Settings beyond the kind (a rank, a learning rate): those that are equal, else the title.
        equal = [m for m in same if settings(m.runs[0], *_SIZE) == settings(run, *_SIZE)]
        same = equal or [method for method in same if method.runs[0].title == run.title]
    if len(same) == 1:
        return same[0].title
    titles = [method.title for method in methods]
    return run.title if run.title not in titles else f"{run.title} ({run.run_id})"


def _kind(run: SavedRun) -> tuple[object, ...]:
    """What stays the same when only the number of training examples changes."""
    model = run.section("model")
    keys = ("name", "implementation", "architecture", "method")
    return (run.summary.get("recipe"), *(model.get(key) for key in keys))
