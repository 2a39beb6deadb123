"""Two methods on the same examples: how far apart, and is that more than chance?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolkit import stats
from toolkit.comparison.methods import Method
from toolkit.comparison.scores import Scores
from toolkit.stats import (
    Interval,
    PairedCounts,
    SeedComparison,
    compare_seeds,
    compare_seeds_and_examples,
    nested_draws,
)
from toolkit.task_scores.measures import Measure
from toolkit.task_scores.view import TaskView

ALPHA = 1 - stats.CONFIDENCE
SEEDS_TO_TEST = 3
"""Fewer seeds than this say nothing about seeds."""


@dataclass(frozen=True)
class OverSeeds:
    """A difference of two methods with several seeds each.

    Args:
        both: t interval and p value for other seeds and other examples; this decides.
        seeds: Welch's t interval for other seeds on these very examples; None where no seed
            changes this measure.
        nested: percentile interval of the bootstrap over seeds and examples, which is too narrow
            with few seeds and only describes.
    """

    both: SeedComparison
    seeds: SeedComparison | None
    nested: Interval


@dataclass(frozen=True)
class Difference:
    """A measure of the first method minus that of the second, means over their seeds.

    Args:
        interval: paired, over test examples, the seeds as they are.
        standard_error: of the difference over test examples.
        p_examples: would other test examples show it? By `test`.
        over_seeds: None with fewer than three seeds on either side, and where no seed changes
            anything.
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


@dataclass(frozen=True)
class Pair:
    """Two methods, by their numbers; the first is the better one by the measure that decides.

    Args:
        differences: by measure, first minus second; the first of them decides.
        counts: how many examples which of them gets right, where each is one run (or its seeds all
            say the same); None otherwise, and where examples are not right or wrong.
        mean_counts: likewise for any number of seeds: means over all pairs of a seed of the first
            and one of the second. Both right, only the first, only the second, both wrong.
        p_holm: the deciding difference's p value, adjusted over all pairs of the comparison.
    """

    first: int
    second: int
    differences: dict[str, Difference]
    counts: PairedCounts | None
    mean_counts: tuple[float, float, float, float] | None
    p_holm: float

    @property
    def deciding(self) -> Difference:
        """The difference of the measure that decides."""
        return next(iter(self.differences.values()))

    @property
    def significant(self) -> bool:
        """Whether the difference stands at the 5 % level after Holm's adjustment."""
        return self.p_holm < ALPHA


def all_pairs(methods: Sequence[Method], scores: dict[str, Scores], view: TaskView) -> list[Pair]:
    """Every method against every other, Holm's adjustment over all of them.

    `methods` are ordered by the measure that decides, the best first.
    """
    drawn = view.cluster_noun or "examples"
    alike = [answers_alike(method, view) for method in methods]
    pairs = []
    for i in range(len(methods)):
        for j in range(i + 1, len(methods)):
            single = alike[i] and alike[j]
            counts = _counts(methods[i], methods[j], view) if single else None
            means = _mean_counts(methods[i], methods[j], view)
            differences = {
                key: _difference(methods[i], methods[j], (alike[i], alike[j]), found, counts, drawn)
                for key, found in scores.items()
            }
            pairs.append(Pair(i, j, differences, counts, means, p_holm=1.0))
    adjusted = stats.holm([pair.deciding.p_value for pair in pairs])
    return [replace(pair, p_holm=p) for pair, p in zip(pairs, adjusted, strict=True)]


def pair_of(pairs: Sequence[Pair], one: int, other: int) -> Pair:
    """The comparison of two methods, whichever is the better one."""
    return next(pair for pair in pairs if {pair.first, pair.second} == {one, other})


def answers_alike(method: Method, view: TaskView) -> bool:
    """Whether all seeds of a method (one, too) give the same answers: the seed changes nothing."""
    answers = [view.answers[place] for place in method.places]
    return all(other == answers[0] for other in answers[1:])


def method_right(method: Method, view: TaskView) -> NDArray[np.bool_] | None:
    """Which examples a method gets right: those that most of its seeds do [examples]."""
    if view.right is None:
        return None
    right: NDArray[np.bool_] = view.right[method.places].mean(axis=0) > 0.5
    return right


def _counts(first: Method, second: Method, view: TaskView) -> PairedCounts | None:
    ours, theirs = method_right(first, view), method_right(second, view)
    return None if ours is None or theirs is None else stats.paired_counts(ours, theirs)


def _mean_counts(
    first: Method, second: Method, view: TaskView
) -> tuple[float, float, float, float] | None:
    if view.right is None:
        return None
    # Shares of the seeds that are right; every seed of one meets every seed of the other.
    ours, theirs = (view.right[method.places].mean(axis=0) for method in (first, second))
    return (
        float((ours * theirs).sum()),
        float((ours * (1 - theirs)).sum()),
        float(((1 - ours) * theirs).sum()),
        float(((1 - ours) * (1 - theirs)).sum()),
    )


def _difference(
    first: Method,
    second: Method,
    alike: tuple[bool, bool],
    scores: Scores,
    counts: PairedCounts | None,
    drawn: str,
) -> Difference:
    """One measure of two methods.

    Args:
        alike: whether all seeds of the first, of the second, give the same answers.
        drawn: what a bootstrap sample is made of, in the plural.
    """
    ours, theirs = scores.values[first.places], scores.values[second.places]
    value = float(ours.mean() - theirs.mean())
    draws = scores.draws[first.places].mean(axis=0) - scores.draws[second.places].mean(axis=0)
    interval, error = stats.difference_interval(draws, value)
    if scores.tests_counts and counts is not None and all(alike):
        interval = stats.paired_difference_interval(counts)
        p_examples, test = stats.exact_mcnemar(counts), "exact McNemar test"
    else:
        p_examples = stats.bootstrap_p_value(draws, value)
        test = f"paired bootstrap over {drawn}"
    over_seeds = None
    enough = min(len(first.runs), len(second.runs)) >= SEEDS_TO_TEST
    if enough and not all(alike):
        over_seeds = _over_seeds(first, second, scores)
    return Difference(
        scores.measure, value, interval, error, p_examples, test, over_seeds,
        _sacrebleu(first, second, scores),
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
    nested = nested_draws(draws, seed=1) - nested_draws(other_draws, seed=2)
    interval, _ = stats.bootstrap_interval(nested)
    return OverSeeds(
        both=compare_seeds_and_examples(ours, theirs, draws, other_draws),
        seeds=compare_seeds(ours, theirs) if len({*ours}) > 1 or len({*theirs}) > 1 else None,
        nested=interval,
    )
