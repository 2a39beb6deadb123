"""Every run's scores on the test set and on bootstrap samples of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit import stats
from toolkit.stats import Estimate
from toolkit.task_scores.measures import Measure
from toolkit.task_scores.view import TaskView

# Runs are scored together as far as their statistics stay below this size: the samples are then
# drawn once for all of them.
_MOST_CELLS = 40_000_000
# What `sacrebleu --paired-bs` draws.
_SACREBLEU_DRAWS, _SACREBLEU_SEED = 1000, 12345


@dataclass(frozen=True)
class Scores:
    """A measure of every run: `values` [runs] and `draws` [runs, draws] on samples shared by all.

    Args:
        n: number of examples.
        clustered: the samples are of whole clusters; examples are then not independent.
        sacrebleu_draws: [runs, draws] of sacrebleu's own samples, where the measure has them.
    """

    measure: Measure
    n: int
    values: NDArray[np.float64]
    draws: NDArray[np.float64]
    clustered: bool = False
    sacrebleu_draws: NDArray[np.float64] | None = None

    def estimate(self, places: Sequence[int], as_one_run: bool) -> Estimate:
        """Mean over these runs with its interval over examples.

        Args:
            as_one_run: they all say the same (or are one): of a share of independent examples the
                interval is then Wilson's.
        """
        value = float(self.values[places].mean())
        if as_one_run and self.tests_counts:
            return Estimate(value, stats.wilson_interval(round(value * self.n), self.n))
        interval, error = stats.bootstrap_interval(self.draws[places].mean(axis=0))
        return Estimate(value, interval, error)

    @property
    def tests_counts(self) -> bool:
        """Whether Wilson's interval and McNemar's test apply: right or wrong, independently."""
        return self.measure.counts_right and not self.clustered


def score_runs(view: TaskView, runs: int, draws: int, seed: int) -> dict[str, Scores]:
    """Scores of all measures, by key; the bootstrap draws examples, or whole clusters of them."""
    return {measure.key: _scores(view, measure, runs, draws, seed) for measure in view.measures}


def _scores(view: TaskView, measure: Measure, runs: int, draws: int, seed: int) -> Scores:
    values, drawn, theirs = [], [], []
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
        if measure.sacrebleu:
            theirs.append(
                stats.score_draws(
                    statistics, measure.score, draws=_SACREBLEU_DRAWS, seed=_SACREBLEU_SEED
                )
            )
    return Scores(
        measure,
        len(first),
        np.array(values, dtype=np.float64),
        np.concatenate(drawn),
        clustered=view.clusters is not None,
        sacrebleu_draws=np.concatenate(theirs) if theirs else None,
    )
