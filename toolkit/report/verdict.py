"""The verdict of a comparison in plain words, for the top of a report."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit import stats
from toolkit.comparison.compare import Comparison
from toolkit.comparison.pairs import Pair
from toolkit.comparison.twins import Twins, find_twins
from toolkit.report import wording
from toolkit.report.needed import Needed, counts_are_known, needed, strictest_level

# Sentences beyond this many rivals repeat what the table of pairs shows better.
_MOST_RIVALS = 3
# Steps of training below which a machine's noise is most of a difference of speed.
_STEPS_FOR_A_SPEED = 20
_FAR_BELOW = " No test set or number of seeds of practical size would separate them."


@dataclass(frozen=True)
class Verdict:
    """The headline says who is better or that it is a tie; the details give the evidence."""

    headline: str
    details: list[str]


def verdict(comparison: Comparison, twins: Sequence[Twins] | None = None) -> Verdict:
    """Who is better on this test set and by how much, or that the set cannot tell.

    Of two implementations of one model: how far apart they train.

    Args:
        twins: of `find_twins`, where they are known already.
    """
    against_best = [pair for pair in comparison.pairs if pair.first == 0]
    beaten = [pair for pair in against_best if pair.significant]
    undecided = [pair for pair in against_best if not pair.significant]
    if undecided:
        headline = _undecided(comparison, undecided)
        details = [
            # The headline already says what it would take to separate the first pair.
            _evidence(comparison, pair) + (_what_it_would_take(comparison, pair) if place else "")
            for place, pair in enumerate(undecided[:_MOST_RIVALS])
        ]
        if beaten:
            details.append(_beaten(comparison, beaten))
    else:
        headline = _win(comparison, beaten[0])
        details = [_evidence(comparison, beaten[0])]
        if len(beaten) > 1:
            details.append(_beaten(comparison, beaten[1:]))
    twins = find_twins(comparison) if twins is None else twins
    trained = [twins_in_words(comparison, found) for found in twins]
    if trained and len(comparison.rows) == 2:
        headline, details = trained[0], [headline, *details]
    else:
        details += trained
    if not comparison.several_seeds:
        headline += " One training run each: other seeds may change this."
    if comparison.forced:
        headline = f"Forced, not a fair comparison: {headline}"
    return Verdict(headline, details + _baseline(comparison))


def twins_in_words(comparison: Comparison, twins: Twins) -> str:
    """How far apart two implementations of one model train, and whether one is faster."""
    ours, theirs = (comparison.rows[place].title for place in (twins.first, twins.second))
    words = f"{ours} and {theirs} started from the same settings and seeds. "
    words += _same_answers(comparison, twins) + _loss_apart(twins)
    ratios = twins.speed_ratios
    steps = min((run.section("training").get("steps") or 0 for place in (twins.first, twins.second)
                 for run in comparison.rows[place].method.runs), default=0)  # fmt: skip
    if ratios and steps < _STEPS_FOR_A_SPEED:
        return words + f"They took {steps:,} steps, too few to say which one is faster."
    if not ratios:
        return words + "Their speeds cannot be compared: conditions differ or were not recorded."
    if min(ratios) > 1 or max(ratios) < 1:
        faster, slower = (ours, theirs) if min(ratios) > 1 else (theirs, ours)
        times = sorted(ratio if min(ratios) > 1 else 1 / ratio for ratio in ratios)
        middle = statistics.median(times)
        spread = f" (median; {times[0]:.2f} to {times[-1]:.2f})" if len(times) > 1 else ""
        return words + f"{faster} trained {middle:.2f} times as fast as {slower}{spread}."
    listed = wording.listed([f"{ratio:.2f}" for ratio in ratios])
    return words + f"Neither is shown to be faster: seed by seed the ratio was {listed}."


def _same_answers(comparison: Comparison, twins: Twins) -> str:
    others = [seed.other_answers for seed in twins.seeds]
    if any(number != 0 for number in others):
        return ""
    every = "both" if len(others) == 2 else f"all {len(others)}"
    seeds = f" with {every} seeds" if len(others) > 1 else ""
    return f"They gave the same answer to all {comparison.n:,} {comparison.examples}{seeds}. "


def _loss_apart(twins: Twins) -> str:
    gap = twins.largest_loss_gap
    if gap is None:
        return "They logged no training loss at a common step. "
    if gap.difference == 0:
        return f"Their training losses are equal to the last bit at all {gap.steps:,} steps. "
    equal = min(seed.loss.equal for seed in twins.seeds if seed.loss is not None)
    steps = "step" if equal == 1 else f"{equal:,} steps"
    start = f"equal to the last bit for the first {steps} at least, and " if equal else ""
    return (
        f"Their training losses are {start}at most {wording.tiny(gap.difference)} apart "
        f"(step {gap.step:,} of {gap.steps:,}); dropout, where there is some, draws other numbers "
        "in each. "
    )


def _named(comparison: Comparison, row: int) -> str:
    """The method with its value."""
    measure, found = comparison.primary, comparison.rows[row]
    return f"{found.title} ({wording.value(measure, found.estimates[measure.key].value)})"


def _win(comparison: Comparison, pair: Pair) -> str:
    rival = _named(comparison, pair.second)
    if len(comparison.rows) > 2:
        rival = f"all others, the best of them {rival}"
    where = f"on {comparison.n:,} {comparison.examples}{_over_seeds(comparison)}"
    measure = comparison.primary
    if measure.higher_is_better:
        comma = "," if len(comparison.rows) > 2 else ""
        how = f"{comma} by {_advantage(pair)} of {measure.label}"
    else:
        how = f": its {measure.label} is lower by {_advantage(pair)}"
    return f"{_named(comparison, 0)} is better than {rival}{how} ({_intervals(pair)}) {where}."


def _undecided(comparison: Comparison, undecided: list[Pair]) -> str:
    # Only pairs with the best are meant: two of the others may well differ from each other.
    others = wording.listed([_named(comparison, pair.second) for pair in undecided])
    closest = undecided[0]
    which = "They are"
    if len(comparison.rows) > 2:
        best, other = comparison.rows[0].title, comparison.rows[closest.second].title
        which = f"{best} and {other} are"
    return (
        f"No winner in {comparison.primary.label}: this test set of {comparison.n:,} "
        f"{comparison.view.noun}{_over_seeds(comparison, 'with ')} cannot separate "
        f"{_named(comparison, 0)} from {others}. {which} {_advantage(closest)} apart "
        f"({_intervals(closest)}).{_of_this_pair_alone(comparison, closest)}"
        f"{_what_it_would_take(comparison, closest)}"
    )


def _of_this_pair_alone(comparison: Comparison, pair: Pair) -> str:
    """Why an interval without zero is no win among many pairs."""
    if not pair.deciding.deciding_interval.excludes_zero() or len(comparison.pairs) < 2:
        return ""
    return (
        f" That interval is of this pair alone; among {len(comparison.pairs)} pairs a difference "
        f"like this is too often chance (adjusted {wording.p_equals(pair.p_holm)})."
    )


def _over_seeds(comparison: Comparison, before: str = "as means over ") -> str:
    """In how many seeds, where there is more than one."""
    counts = sorted({len(row.method.runs) for row in comparison.rows})
    if counts == [1]:
        return ""
    seeds = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f" {before}{seeds} seeds"


def _advantage(pair: Pair) -> str:
    difference = pair.deciding
    return wording.difference(difference.measure, difference.advantage)


def _intervals(pair: Pair) -> str:
    difference = pair.deciding
    interval = wording.advantage_interval(difference.measure, difference.deciding_interval)
    over = "" if difference.over_seeds is None else " over seeds and examples"
    return f"95% interval {interval}{over}"


def _evidence(comparison: Comparison, pair: Pair) -> str:
    best, other = comparison.rows[pair.first].title, comparison.rows[pair.second].title
    difference = pair.deciding
    p = f"{difference.test} {wording.p_equals(difference.p_examples)}"
    if (over := difference.over_seeds) is not None:
        p = (
            f"{wording.p_equals(over.both.p_value)}; over seeds alone "
            f"{'–' if over.seeds is None else wording.p_equals(over.seeds.p_value)}, over examples "
            "alone "
            f"{wording.p_equals(difference.p_examples)}"
        )
    if len(comparison.pairs) > 1:
        p += f"; after Holm's adjustment over {len(comparison.pairs)} pairs "
        p += wording.p_equals(pair.p_holm)
    return f"{best} against {other}: {_advantage(pair)} ({_intervals(pair)}; {p})."


def _what_it_would_take(comparison: Comparison, pair: Pair) -> str:
    """More examples, more seeds, or both: whatever the pair lacks."""
    lacking = needed(comparison, pair)
    if lacking.out_of_reach:
        return _FAR_BELOW
    if lacking.equal:
        return _what_can_be_seen(pair, lacking)
    wanted = []
    if lacking.examples is not None:
        wanted.append(f"about {wording.about(lacking.examples)} {comparison.examples}")
    if lacking.seeds is not None:
        wanted.append(f"about {wording.about(lacking.seeds)} seeds of each")
    if lacking.both:
        wanted = ["more test examples and more seeds together"]
    if not wanted:
        return ""
    return (
        f" To show a true difference of that size would take {wording.listed(wanted)} "
        f"({_power(comparison)})."
    )


def _power(comparison: Comparison) -> str:
    pairs, power = len(comparison.pairs), f"{wording.level(stats.POWER)} power"
    if pairs == 1:
        return power
    level = f"{strictest_level(comparison):.2g}"
    return f"{power} at the level {level} that {pairs} pairs leave"


def _what_can_be_seen(pair: Pair, lacking: Needed) -> str:
    """For two methods that are equally good here: what difference the test set would show."""
    if pair.counts is None or not counts_are_known(pair):
        return " Their values are the same."
    if pair.counts.discordance == 0:
        return " They are right on the same examples, every one."
    if lacking.detectable is None:
        return " They disagree too seldom for a set of this size to show any difference."
    return (
        f" As often as they disagree ({wording.percent(pair.counts.discordance)} of the examples), "
        f"this set shows true differences from about {wording.points(lacking.detectable)} "
        f"({wording.level(lacking.power)} power)."
    )


def _beaten(comparison: Comparison, beaten: list[Pair]) -> str:
    named = [
        f"{comparison.rows[pair.second].title} by {_advantage(pair)} ("
        + wording.advantage_interval(pair.deciding.measure, pair.deciding.deciding_interval)
        + ")"
        for pair in beaten[:_MOST_RIVALS]
    ]
    if len(beaten) > len(named):
        named.append(f"{len(beaten) - len(named)} more")
    return f"{comparison.rows[0].title} is better than {wording.listed(named)}."


def _baseline(comparison: Comparison) -> list[str]:
    """A warning when even the best is not surely better than what needs no model."""
    if comparison.view.chance is None:
        return []
    name, reached = comparison.view.chance
    best = comparison.rows[0].estimates[comparison.primary.key].interval
    bound = best.low if comparison.primary.higher_is_better else -best.high
    if bound > (reached if comparison.primary.higher_is_better else -reached):
        return []
    return [
        f"{wording.capitalised(name)} would score {wording.value(comparison.primary, reached)} on "
        "this test set: no method is shown to be better than that."
    ]
