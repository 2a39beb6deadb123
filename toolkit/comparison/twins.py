"""The same weights, data and seeds under two implementations: equal curves, and which is faster?"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.comparison.compare import Comparison
from toolkit.comparison.methods import are_twins, implementation
from toolkit.comparison.saved_run import SavedRun
from toolkit.comparison.training_log import Point, TrainingLog, selection_metric


@dataclass(frozen=True)
class Gap:
    """The largest difference of two curves, and the step where it is.

    Args:
        steps: how many were compared.
        equal: how many of them, from the first on, are equal bit for bit.
    """

    difference: float
    step: int
    steps: int
    equal: int


@dataclass(frozen=True)
class TwinSeed:
    """Two runs of one seed.

    Args:
        loss: of training.
        validation: of the metric that chose the model.
        other_answers: test examples that they answer differently; None where answers are numbers.
        speed_ratio: tokens (or examples) per second, first over second.
    """

    seed: int | None
    loss: Gap | None
    validation: Gap | None
    other_answers: int | None
    speed_ratio: float | None


@dataclass(frozen=True)
class Twins:
    """Two methods that differ in their implementation only: first is ours, second HuggingFace's."""

    first: int
    second: int
    seeds: list[TwinSeed]

    @property
    def largest_loss_gap(self) -> Gap | None:
        """Over all seeds."""
        gaps = [seed.loss for seed in self.seeds if seed.loss is not None]
        return max(gaps, key=lambda gap: gap.difference, default=None)

    @property
    def speed_ratios(self) -> list[float]:
        """One per seed that has both speeds."""
        return [seed.speed_ratio for seed in self.seeds if seed.speed_ratio is not None]

    @property
    def median_speed_ratio(self) -> float | None:
        """Middle of `speed_ratios`."""
        return statistics.median(self.speed_ratios) if self.speed_ratios else None


def find_twins(comparison: Comparison) -> list[Twins]:
    """Pairs of methods whose settings differ in `implementation` alone, with what seeds show."""
    found = [
        _twins(comparison, i, j)
        for i, ours in enumerate(comparison.rows)
        for j, theirs in enumerate(comparison.rows)
        if implementation(ours.run) == "scratch" and are_twins(ours.run, theirs.run)
    ]
    return [twins for twins in found if twins.seeds]


def _twins(comparison: Comparison, first: int, second: int) -> Twins:
    ours, theirs = comparison.rows[first].method, comparison.rows[second].method
    place_of = dict(zip(theirs.seeds, range(len(theirs.runs)), strict=True))
    seeds = []
    for own, run in enumerate(ours.runs):
        if run.seed in place_of:
            other = place_of[run.seed]
            differing = _other_answers(comparison, ours.places[own], theirs.places[other])
            logs = comparison.logs[first][own], comparison.logs[second][other]
            seeds.append(_twin_seed(comparison, (run, theirs.runs[other]), logs, differing))
    return Twins(first, second, seeds)


def _other_answers(comparison: Comparison, place: int, other: int) -> int | None:
    if comparison.view.right is None:
        return None
    answers = comparison.view.answers
    return sum(a != b for a, b in zip(answers[place], answers[other], strict=True))


def _twin_seed(
    comparison: Comparison,
    runs: tuple[SavedRun, SavedRun],
    logs: tuple[TrainingLog, TrainingLog],
    differing: int | None,
) -> TwinSeed:
    ours, theirs = logs
    chosen = selection_metric(runs)
    metric = "" if chosen is None else chosen[0]
    validation = _gap(ours.validation.get(metric, []), theirs.validation.get(metric, []))
    alike = comparison.same_machine and comparison.same_padding
    ratio = _speed_ratio(*runs) if alike else None
    return TwinSeed(runs[0].seed, _gap(ours.loss, theirs.loss), validation, differing, ratio)


def _gap(ours: Sequence[Point], theirs: Sequence[Point]) -> Gap | None:
    """At the steps that both logged; NaN against a number counts as infinitely apart."""
    other = {point.step: point.value for point in theirs}
    gaps = []
    for point in ours:
        if point.step is not None and point.step in other:
            difference = abs(point.value - other[point.step])
            gaps.append((difference if difference == difference else float("inf"), point.step))
    if not gaps:
        return None
    difference, step = max(gaps)
    equal = next((i for i, (gap, _) in enumerate(gaps) if gap > 0), len(gaps))
    return Gap(difference, step, len(gaps), equal)


def _speed_ratio(run: SavedRun, other: SavedRun) -> float | None:
    for key in ("tokens_per_second", "examples_per_second"):
        ours, theirs = run.section("training").get(key), other.section("training").get(key)
        if ours and theirs:
            return float(ours / theirs)
    return None
