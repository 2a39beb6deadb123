"""Every run's scores on the test set and on bootstrap samples of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit import stats
from toolkit.stats import Estimate
from toolkit.task_scores.measures import Measure
from toolkit.task_scores.view import TaskView

# Runs and measures are scored together as far as their statistics stay below this size: the samples
# are then drawn once for all of them.
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
    values: dict[str, list[NDArray[np.float64]]] = {m.key: [] for m in view.measures}
    drawn: dict[str, list[NDArray[np.float64]]] = {m.key: [] for m in view.measures}
    theirs: dict[str, list[NDArray[np.float64]]] = {m.key: [] for m in view.measures}
    for group in _groups(view, runs):
        measures = [(statistics, measure.score) for measure, statistics in group]
        found = stats.measures_draws(measures, clusters=view.clusters, draws=draws, seed=seed)
        for (measure, statistics), scores in zip(group, found, strict=True):
            values[measure.key] += [measure.score(one.sum(axis=0)) for one in statistics]
            drawn[measure.key].append(scores)
        bleu = [(m, statistics) for m, statistics in group if m.sacrebleu]
        if bleu:
            measures = [(statistics, measure.score) for measure, statistics in bleu]
            found = stats.measures_draws(measures, draws=_SACREBLEU_DRAWS, seed=_SACREBLEU_SEED)
            for (measure, _), scores in zip(bleu, found, strict=True):
                theirs[measure.key].append(scores)
    return {
        measure.key: Scores(
            measure,
            len(view.statistics(measure.key, 0)),
            np.array(values[measure.key], dtype=np.float64),
            np.concatenate(drawn[measure.key]),
            clustered=view.clusters is not None,
            sacrebleu_draws=np.concatenate(theirs[measure.key]) if theirs[measure.key] else None,
        )
        for measure in view.measures
    }


def _groups(view: TaskView, runs: int) -> Iterator[list[tuple[Measure, list[NDArray[np.float64]]]]]:
    """Measures with the statistics of runs, in order, as many as fit together; no measure twice."""
    group: list[tuple[Measure, list[NDArray[np.float64]]]] = []
    cells = 0
    for measure in view.measures:
        statistics: list[NDArray[np.float64]] = []
        for place in range(runs):
            one = view.statistics(measure.key, place)
            if cells and cells + one.size > _MOST_CELLS:
                yield [*group, *([(measure, statistics)] if statistics else [])]
                group, statistics, cells = [], [], 0
            statistics.append(one)
            cells += one.size
        group.append((measure, statistics))
    yield group
