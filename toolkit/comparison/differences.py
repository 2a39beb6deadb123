"""One measure of two methods: how far apart, over examples, over seeds, over both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolkit import stats
from toolkit.comparison.methods import Method, are_twins
from toolkit.comparison.scores import Scores
from toolkit.stats import (
    Interval,
    PairedCounts,
    SeedComparison,
    compare_paired_seeds,
    compare_paired_seeds_and_examples,
    compare_seeds,
    compare_seeds_and_examples,
    nested_draws,
)
from toolkit.task_scores.measures import Measure
from toolkit.task_scores.view import TaskView

SEEDS_TO_TEST = 3
"""Fewer seeds than this say nothing about seeds."""
MANY_DRAWS = 100_000
"""Draws for a p value that fewer leave on either side of a level; less for very many examples."""
# Of draws for the same p value: other samples than those of the intervals in the table.
_MANY_DRAWS_SEED = 1


@dataclass(frozen=True)
class OverSeeds:
    """A difference of two methods with several seeds each.

    Args:
        both: t interval and p value for other seeds and other examples; this decides.
        seeds: Welch's or the paired t interval for other seeds on these very examples; None where
            no seed changes this measure.
        paired: the methods share what a seed decides, so that the seeds' differences are tested.
        nested: percentile interval of the bootstrap over seeds and examples, which is too narrow
            with few seeds and only describes.
    """

    both: SeedComparison
    seeds: SeedComparison | None
    nested: Interval
    paired: bool = False


@dataclass(frozen=True)
class Difference:
    """A measure of the first method minus that of the second, means over their seeds.

    Args:
        interval: paired, over test examples, the seeds as they are.
        standard_error: of the difference over test examples.
        p_examples: would other test examples show it? By `test`.
        over_seeds: None with fewer than three seeds on either side, and where no seed changes
            anything.
        draws: of the bootstrap behind `p_examples`; None for a test without.
        p_sacrebleu: what sacrebleu's paired bootstrap prints for two single runs; not to decide by
            (see `toolkit.stats.sacrebleu_p_value`). None for other measures.
    """

    measure: Measure
    value: float
    interval: Interval
    standard_error: float
    p_examples: float
    test: str
    over_seeds: OverSeeds | None = None
    p_sacrebleu: float | None = None
    draws: int | None = None

    @property
    def p_examples_error(self) -> float | None:
        """Monte-Carlo standard error of `p_examples`; None for a test without draws."""
        return None if self.draws is None else stats.p_value_error(self.p_examples, self.draws)

    @property
    def advantage(self) -> float:
        """What the first method is better by."""
        return self.measure.advantage(self.value)

    @property
    def deciding_interval(self) -> Interval:
        """Over seeds and examples where there are enough seeds, else over examples."""
        return self.interval if self.over_seeds is None else self.over_seeds.both.interval

    @property
    def p_value(self) -> float:
        """The p value that decides: of the same test as `deciding_interval`."""
        return self.p_examples if self.over_seeds is None else self.over_seeds.both.p_value


def difference_of(
    first: Method,
    second: Method,
    alike: tuple[bool, bool],
    scores: Scores,
    counts: PairedCounts | None,
    drawn: str,
) -> Difference:
    """The difference of one measure, first minus second.

    Args:
        counts: who is right on which example, where each method is one run.
        alike: whether all seeds of the first, of the second, give the same answers.
        drawn: what a bootstrap sample is made of, in the plural.
    """
    value = float(first.mean(scores.values) - second.mean(scores.values))
    draws = first.mean(scores.draws) - second.mean(scores.draws)
    interval, error = stats.difference_interval(draws, value)
    if scores.tests_counts and counts is not None and all(alike):
        interval = stats.paired_difference_interval(counts)
        p_examples, test, number = stats.exact_mcnemar(counts), "exact McNemar test", None
    else:
        p_examples, number = stats.bootstrap_p_value(draws, value), len(draws)
        test = f"paired bootstrap over {drawn}"
    over_seeds = None
    enough = min(len(first.runs), len(second.runs)) >= SEEDS_TO_TEST
    if enough and not all(alike):
        over_seeds = _over_seeds(first, second, scores)
    return Difference(
        scores.measure, value, interval, error, p_examples, test, over_seeds,
        _sacrebleu(first, second, scores), number,
    )  # fmt: skip


def _sacrebleu(first: Method, second: Method, scores: Scores) -> float | None:
    draws, places = scores.sacrebleu_draws, (*first.places, *second.places)
    if draws is None or len(places) > 2:
        return None
    ours, theirs = places
    difference = float(scores.values[ours] - scores.values[theirs])
    return stats.sacrebleu_p_value(draws[ours] - draws[theirs], difference)


def _over_seeds(first: Method, second: Method, scores: Scores) -> OverSeeds:
    ours, theirs = scores.values[first.places].tolist(), scores.values[second.places].tolist()
    draws, other_draws = scores.draws[first.places], scores.draws[second.places]
    if paired_by_seed(first, second):
        return _over_paired_seeds(np.subtract(ours, theirs).tolist(), draws - other_draws)
    nested = nested_draws(draws, seed=1) - nested_draws(other_draws, seed=2)
    interval, _ = stats.bootstrap_interval(nested)
    seeds = compare_seeds(ours, theirs) if len({*ours}) > 1 or len({*theirs}) > 1 else None
    both = compare_seeds_and_examples(ours, theirs, draws, other_draws)
    return OverSeeds(both=_no_surer_than(seeds, both), seeds=seeds, nested=interval)


def _over_paired_seeds(differences: list[float], draws: NDArray[np.float64]) -> OverSeeds:
    """Of differences seed by seed, and their draws [seeds, draws]."""
    interval, _ = stats.bootstrap_interval(nested_draws(draws, seed=1))
    seeds = compare_paired_seeds(differences) if len({*differences}) > 1 else None
    both = compare_paired_seeds_and_examples(differences, draws)
    return OverSeeds(both=_no_surer_than(seeds, both), seeds=seeds, nested=interval, paired=True)


def _no_surer_than(seeds: SeedComparison | None, both: SeedComparison) -> SeedComparison:
    """Over seeds and examples, but never narrower than over seeds alone.

    More degrees of freedom, which the examples bring, can make it so where their variance is small.
    """
    if seeds is None:
        return both
    low = min(both.interval.low, seeds.interval.low)
    high = max(both.interval.high, seeds.interval.high)
    return replace(
        both,
        interval=replace(both.interval, low=low, high=high),
        p_value=max(both.p_value, seeds.p_value),
    )


def paired_by_seed(first: Method, second: Method) -> bool:
    """Whether two methods share what a seed decides, and were run with the same seeds.

    Two implementations of one model do; other methods draw other numbers with the same seed. The
    runs of both are ordered by seed.
    """
    return first.seeds == second.seeds and are_twins(first.runs[0], second.runs[0])


def with_many_draws(
    pairs: Sequence[tuple[Difference, Method, Method]], view: TaskView, seed: int = 0
) -> list[Difference]:
    """The same differences, their intervals and p values over examples from many more draws.

    Args:
        pairs: differences of one and the same measure, and the two methods of each.
    """
    measure = pairs[0][0].measure
    methods = [method for _, first, second in pairs for method in (first, second)]
    runs = sorted({place for method in methods for place in method.places})
    number = {place: index for index, place in enumerate(runs)}

    def numbers(method: Method) -> list[int]:
        return [number[place] for place in method.places]

    drawn = stats.differences_draws(
        [view.statistics(measure.key, place) for place in runs],
        [(numbers(first), numbers(second)) for _, first, second in pairs],
        measure.score,
        clusters=view.clusters,
        draws=MANY_DRAWS,
        seed=seed + _MANY_DRAWS_SEED,
    )
    found = []
    for (difference, _, _), draws in zip(pairs, drawn, strict=True):
        interval, error = stats.difference_interval(draws, difference.value)
        found.append(
            replace(
                difference,
                interval=interval,
                standard_error=error,
                p_examples=stats.bootstrap_p_value(draws, difference.value),
                draws=len(draws),
            )
        )
    return found
