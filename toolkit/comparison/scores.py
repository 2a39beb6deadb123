"""Every run's scores on the test set and on bootstrap samples of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit import stats
from toolkit.task_scores.measures import Measure
from toolkit.task_scores.view import TaskView

# Runs are scored together as far as their statistics stay below this size: the samples are then
# drawn once for all of them.
_MOST_CELLS = 40_000_000


@dataclass(frozen=True)
class Scores:
    """A measure of every run: `values` [runs] and `draws` [runs, draws] on samples shared by all.

    `n` is the number of examples.
    """

    measure: Measure
    n: int
    values: NDArray[np.float64]
    draws: NDArray[np.float64]


def score_runs(view: TaskView, runs: int, draws: int, seed: int) -> dict[str, Scores]:
    """Scores of all measures, by key; the bootstrap draws examples, or whole clusters of them."""
    return {measure.key: _scores(view, measure, runs, draws, seed) for measure in view.measures}


def _scores(view: TaskView, measure: Measure, runs: int, draws: int, seed: int) -> Scores:
    values, drawn = [], []
    first = view.statistics(measure.key, 0)
    together = max(1, _MOST_CELLS // first.size)
    for start in range(0, runs, together):
        places = range(start, min(start + together, runs))
        statistics = [view.statistics(measure.key, place) for place in places]
        values += [measure.score(found.sum(axis=0)) for found in statistics]
        drawn.append(
            stats.score_draws(
                statistics, measure.score, clusters=view.clusters, draws=draws, seed=seed
            )
        )
    return Scores(measure, len(first), np.array(values, dtype=np.float64), np.concatenate(drawn))
