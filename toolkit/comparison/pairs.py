"""Two methods on the same examples: how far apart, and is that more than chance?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolkit import stats
from toolkit.comparison.differences import Difference, difference_of, with_many_draws
from toolkit.comparison.methods import Method
from toolkit.comparison.scores import Scores
from toolkit.stats import PairedCounts
from toolkit.task_scores.view import TaskView

ALPHA = 1 - stats.CONFIDENCE
# Monte-Carlo standard errors within which a p value may be on either side of a level.
_ERRORS = 5


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


def all_pairs(
    methods: Sequence[Method], scores: dict[str, Scores], view: TaskView, seed: int = 0
) -> list[Pair]:
    """Every method against every other, Holm's adjustment over all of them.

    Where chance among the draws of a bootstrap could decide whether a pair is significant, its p
    value is computed from many more draws.

    Args:
        methods: ordered by the measure that decides, the best first.
        seed: of those draws.
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
                key: difference_of(
                    methods[i], methods[j], (alike[i], alike[j]), found, counts, drawn
                )
                for key, found in scores.items()
            }
            pairs.append(Pair(i, j, differences, counts, means, p_holm=1.0))
    pairs = _adjusted(pairs)
    return _adjusted(_refined(pairs, methods, view, seed))


def _adjusted(pairs: Sequence[Pair]) -> list[Pair]:
    adjusted = stats.holm([pair.deciding.p_value for pair in pairs])
    return [replace(pair, p_holm=p) for pair, p in zip(pairs, adjusted, strict=True)]


def _left_to_chance(pair: Pair) -> bool:
    """Whether other draws could put the adjusted p value on the other side of the level."""
    found = pair.deciding
    error = found.p_examples_error
    if error is None or found.over_seeds is not None:
        return False
    return abs(pair.p_holm - ALPHA) < _ERRORS * error * pair.p_holm / found.p_examples


def _refined(
    pairs: Sequence[Pair], methods: Sequence[Method], view: TaskView, seed: int
) -> list[Pair]:
    """With many draws for those that few leave to chance."""
    places = [place for place, pair in enumerate(pairs) if _left_to_chance(pair)]
    if not places:
        return list(pairs)
    asked = [(pairs[place].deciding, methods[pairs[place].first], methods[pairs[place].second])
             for place in places]  # fmt: skip
    found = list(pairs)
    for place, refined in zip(places, with_many_draws(asked, view, seed), strict=True):
        differences = pairs[place].differences | {refined.measure.key: refined}
        found[place] = replace(pairs[place], differences=differences)
    return found


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
    right: NDArray[np.bool_] = method.mean(view.right) > 0.5
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
    ours, theirs = first.mean(view.right), second.mean(view.right)
    return (
        float((ours * theirs).sum()),
        float((ours * (1 - theirs)).sum()),
        float(((1 - ours) * theirs).sum()),
        float(((1 - ours) * (1 - theirs)).sum()),
    )
