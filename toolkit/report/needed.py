"""What a pair of methods lacks to be told apart: more test examples, more seeds, or both."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit import stats
from toolkit.comparison.compare import Comparison
from toolkit.comparison.pairs import ALPHA, Pair

# Beyond these a number of examples (times those there are) or of seeds says no more than "many".
_MOST_TIMES_EXAMPLES = 10_000
_MOST_SEEDS = 1_000


@dataclass(frozen=True)
class Needed:
    """What it would take to show a true difference of the size found.

    Args:
        level: of the test, strict enough for Holm's first step; `power` is the chance to find it.
        examples: test examples; None: those there are suffice, or no number would do.
        seeds: of each method; likewise.
        both: neither alone is lacking, but together they do not suffice.
        equal: the methods differ by nothing here, so that no number of examples would do.
        detectable: for those the smallest true difference of accuracy that this test set would
            show, where examples are right or wrong; None: none, or not computed.
        out_of_reach: no practical number of examples or seeds would do.
    """

    level: float
    power: float = stats.POWER
    examples: int | None = None
    seeds: int | None = None
    both: bool = False
    equal: bool = False
    detectable: float | None = None
    out_of_reach: bool = False


def strictest_level(comparison: Comparison) -> float:
    """The level of Holm's first step: examples that suffice whatever the order of the p values."""
    return ALPHA / len(comparison.pairs)


def needed(comparison: Comparison, pair: Pair) -> Needed:
    """More examples, more seeds, or both: whatever the pair lacks."""
    level, difference = strictest_level(comparison), pair.deciding
    examples = seeds = None
    if difference.p_examples >= level:
        examples = _examples(comparison, pair, level)
        if examples is None:
            return Needed(level, equal=True, detectable=_detectable(pair, level))
        if examples > _MOST_TIMES_EXAMPLES * comparison.n:
            return Needed(level, out_of_reach=True)
    over = difference.over_seeds
    if over is not None and over.seeds is not None and over.seeds.p_value >= level:
        key = difference.measure.key
        ours, theirs = (comparison.rows[place].values[key] for place in (pair.first, pair.second))
        if over.paired:
            apart = [one - other for one, other in zip(ours, theirs, strict=True)]
            seeds = stats.paired_seeds_needed(apart, alpha=level, power=stats.POWER)
        else:
            seeds = stats.seeds_needed(ours, theirs, alpha=level, power=stats.POWER)
        if seeds is None or seeds > _MOST_SEEDS:
            return Needed(level, out_of_reach=True)
    lacks_both = over is not None and over.both.p_value >= level
    return Needed(
        level, examples=examples, seeds=seeds, both=examples is seeds is None and lacks_both
    )


def counts_are_known(pair: Pair) -> bool:
    """Whether it is known on how many examples exactly one of the two is right."""
    return pair.counts is not None and pair.deciding.measure.counts_right


def _examples(comparison: Comparison, pair: Pair, level: float) -> int | None:
    difference = pair.deciding
    if difference.measure.counts_right and pair.counts is not None:
        return stats.examples_needed(pair.counts, level)
    return stats.examples_needed_bootstrap(
        comparison.n, difference.value, difference.standard_error, level, stats.POWER
    )


def _detectable(pair: Pair, level: float) -> float | None:
    if pair.counts is None or not pair.deciding.measure.counts_right:
        return None
    return stats.detectable_difference(pair.counts, level)
