"""The verdict of a comparison in plain words, for the top of a report."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit import stats
from toolkit.compare import ALPHA, Comparison, Pair
from toolkit.report import wording

# Sentences beyond this many rivals repeat what the table of pairs shows better.
_MOST_RIVALS = 3


@dataclass(frozen=True)
class Verdict:
    """The headline says who is better or that it is a tie; the details give the evidence."""

    headline: str
    details: list[str]


def verdict(comparison: Comparison) -> Verdict:
    """Who is better on this test set and by how much, or that the set cannot tell."""
    against_best = [pair for pair in comparison.pairs if pair.first == 0]
    beaten = [pair for pair in against_best if pair.significant]
    undecided = [pair for pair in against_best if not pair.significant]
    if undecided:
        headline = _tie(comparison, undecided)
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
    return Verdict(headline, details + _baseline(comparison))


def _named(comparison: Comparison, row: int) -> str:
    """The run with its accuracy."""
    found = comparison.rows[row]
    return f"{found.title} ({wording.percent(found.accuracy.value)})"


def _win(comparison: Comparison, pair: Pair) -> str:
    rival = _named(comparison, pair.second)
    if len(comparison.rows) > 2:
        rival = f"all others, the best of them {rival},"
    return (
        f"{_named(comparison, 0)} is better than {rival} by "
        f"{wording.points(pair.counts.difference)} of accuracy (95% interval "
        f"{wording.interval_in_points(pair.interval)}) on {comparison.n:,} test examples."
    )


def _tie(comparison: Comparison, undecided: list[Pair]) -> str:
    # Only pairs with the best are meant: two of the others may well differ from each other.
    tied = wording.listed([_named(comparison, pair.second) for pair in undecided])
    closest = undecided[0]
    which = "They are"
    if len(comparison.rows) > 2:
        best, other = comparison.rows[0].title, comparison.rows[closest.second].title
        which = f"{best} and {other} are"
    return (
        f"A tie: this test set of {comparison.n:,} examples cannot separate "
        f"{_named(comparison, 0)} from {tied}. "
        f"{which} {wording.points(closest.counts.difference)} apart (95% interval "
        f"{wording.interval_in_points(closest.interval)})."
        f"{_what_it_would_take(comparison, closest)}"
    )


def _strictest_level(comparison: Comparison) -> float:
    """The level of Holm's first step: examples that suffice whatever the order of the p values."""
    return ALPHA / len(comparison.pairs)


def _evidence(comparison: Comparison, pair: Pair) -> str:
    best, other = comparison.rows[pair.first].title, comparison.rows[pair.second].title
    p = f"exact McNemar {wording.p_equals(pair.p_value)}"
    if len(comparison.pairs) > 1:
        p += f", after Holm's adjustment over {len(comparison.pairs)} pairs "
        p += wording.p_equals(pair.p_holm)
    return (
        f"{best} against {other}: {wording.points(pair.counts.difference)} "
        f"(95% interval {wording.interval_in_points(pair.interval)}; {p})."
    )


def _what_it_would_take(comparison: Comparison, pair: Pair) -> str:
    level = _strictest_level(comparison)
    needed = stats.examples_needed(pair.counts, level)
    if needed is not None:
        return (
            f" To show a true difference of that size would take about {wording.about(needed)} "
            "test examples (80% power)."
        )
    smallest = stats.detectable_difference(pair.counts, level)
    if smallest is None:
        return " They disagree too seldom for a set of this size to show any difference."
    return (
        f" As often as they disagree ({wording.percent(pair.counts.discordance)} of the examples), "
        f"this set shows true differences from about {wording.points(smallest)} (80% power)."
    )


def _beaten(comparison: Comparison, beaten: list[Pair]) -> str:
    named = [
        f"{comparison.rows[pair.second].title} by {wording.points(pair.counts.difference)} "
        f"({wording.interval_in_points(pair.interval)})"
        for pair in beaten[:_MOST_RIVALS]
    ]
    if len(beaten) > len(named):
        named.append(f"{len(beaten) - len(named)} more")
    return f"{comparison.rows[0].title} is better than {wording.listed(named)}."


def _baseline(comparison: Comparison) -> list[str]:
    """A warning when even the best is not surely better than always giving the same answer."""
    name, share = majority(comparison)
    if comparison.rows[0].accuracy.interval.low > share:
        return []
    return [
        f"Always answering {name!r} would score {wording.percent(share)} on this test set: no run "
        "is shown to be better than that."
    ]


def majority(comparison: Comparison) -> tuple[str, float]:
    """The most frequent label of the test set and its share: the score of always answering it."""
    counts = comparison.label_counts()
    name = max(counts, key=lambda label: counts[label])
    return name, counts[name] / comparison.n
