"""Test examples to show in a report, drawn by chance so that nobody picks the flattering ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.comparison.compare import Comparison
from toolkit.comparison.pairs import method_right
from toolkit.report import wording

LONGEST_TEXT = 160
_EACH = 3


@dataclass(frozen=True)
class Answer:
    """What a method answered, all its seeds; None where unknown.

    `right` is what most of them were, `confidence` and `loss` are means.
    """

    title: str
    text: str
    right: bool | None
    confidence: float | None
    loss: float | None


@dataclass(frozen=True)
class Example:
    """One test example with every method's answer, in the order of the table.

    `shown` is its text, or the file and row of its image; `passage` what is shown of the text that
    it asks about, None where it asks about none or the text was not recorded.
    """

    id: str
    shown: str
    passage: str | None
    truth: str
    answers: list[Answer]


@dataclass(frozen=True)
class ExampleGroup:
    """Examples of one kind ("only A is right") and, in words, how they were chosen.

    `size` is how many of that kind there are; None where they were chosen by rank.
    """

    title: str
    how: str
    size: int | None
    examples: list[Example]


def group_examples(comparison: Comparison, seed: int = 0) -> list[ExampleGroup]:
    """Where the two best methods differ, and what is hardest for all.

    Raises:
        ValueError: the runs recorded neither texts nor images.
    """
    if comparison.aligned.inputs is None and comparison.aligned.images is None:
        raise ValueError("the runs recorded neither texts nor images")
    first, second = (method_right(row.method, comparison.view) for row in comparison.rows[:2])
    if first is None or second is None or not (first | second).any():
        groups = _by_quality(comparison)
    else:
        groups = _by_right(comparison, first, second, seed)
    return [*groups, *_worst_by_loss(comparison)]


def _by_right(
    comparison: Comparison, first: NDArray[np.bool_], second: NDArray[np.bool_], seed: int
) -> list[ExampleGroup]:
    a, b = (row.title for row in comparison.rows[:2])
    rng = np.random.default_rng(seed)
    groups = []
    for title, mask in (
        (f"{a} right, {b} wrong", first & ~second),
        (f"{b} right, {a} wrong", second & ~first),
        (f"{a} and {b} both wrong", ~first & ~second),
        (f"{a} and {b} both right", first & second),
    ):
        found = np.flatnonzero(mask)
        chosen = rng.choice(found, min(_EACH, len(found)), replace=False).tolist()
        how = f"{len(chosen)} of {len(found):,}, drawn by chance (seed {seed}), not picked."
        if len(chosen) == len(found):
            how = "All there are."
        groups.append(
            ExampleGroup(title, how, len(found), [_example(comparison, row) for row in chosen])
        )
    return [group for group in groups if group.size]


def _by_quality(comparison: Comparison) -> list[ExampleGroup]:
    """The examples on which the two best methods are furthest apart, either way."""
    view = comparison.view
    a, b = (row.title for row in comparison.rows[:2])
    ours, theirs = (view.quality[row.method.places].mean(axis=0) for row in comparison.rows[:2])
    apart = ours - theirs
    groups = []
    for title, order in (
        (f"{a} does better than {b}", np.argsort(-apart, kind="stable")),
        (f"{b} does better than {a}", np.argsort(apart, kind="stable")),
    ):
        better = apart > 0 if title.startswith(f"{a} does") else apart < 0
        chosen = [int(row) for row in order[:_EACH] if better[row]]
        how = (
            f"The {len(chosen)} of {int(better.sum()):,} with the largest difference of "
            f"{view.quality_label}."
        )
        groups.append(
            ExampleGroup(
                title, how, int(better.sum()), [_example(comparison, row) for row in chosen]
            )
        )
    return [group for group in groups if group.examples]


def _worst_by_loss(comparison: Comparison) -> list[ExampleGroup]:
    """What all methods find hardest: a look at these often shows wrong labels."""
    loss = comparison.view.loss
    if loss is None:
        return []
    places = [place for row in comparison.rows for place in row.method.places]
    known = loss[[place for place in places if np.isfinite(loss[place]).all()]]
    if not len(known):
        return []
    mean = known.mean(axis=0)
    chosen = np.argsort(-mean, kind="stable")[:_EACH].tolist()
    how = "The highest mean loss over the runs that recorded one."
    if comparison.view.classes is not None:
        how += " Often these are wrong labels."
    return [
        ExampleGroup("Hardest for all", how, None, [_example(comparison, row) for row in chosen])
    ]


def _example(comparison: Comparison, row: int) -> Example:
    view = comparison.view
    answers = []
    for table_row in comparison.rows:
        places = table_row.method.places
        right = method_right(table_row.method, view)
        answers.append(
            Answer(
                title=table_row.title,
                text=_answers([view.answers[place][row] for place in places]),
                right=None if right is None else bool(right[row]),
                confidence=_mean(view.confidence, places, row) if len(places) == 1 else None,
                loss=_mean(view.loss, places, row),
            )
        )
    return Example(
        id=comparison.aligned.ids[row],
        shown=_shown(comparison, row),
        passage=None if view.passages is None else view.passages[row],
        truth=wording.shortened(view.truth[row], LONGEST_TEXT),
        answers=answers,
    )


def _answers(texts: Sequence[str]) -> str:
    """One answer, or what the seeds answered, the most frequent first: "good (2) · bad"."""
    counts = Counter(wording.shortened(text, LONGEST_TEXT) for text in texts)
    # An answer may hold commas and semicolons itself.
    return " · ".join(
        text if count == 1 else f"{text} ({count})" for text, count in counts.most_common()
    )


def _mean(values: NDArray[np.float64] | None, places: Sequence[int], row: int) -> float | None:
    found = math.nan if values is None else float(values[list(places), row].mean())
    return found if math.isfinite(found) else None


def _shown(comparison: Comparison, row: int) -> str:
    aligned = comparison.aligned
    if aligned.inputs is not None:
        return wording.shortened(aligned.inputs[row], LONGEST_TEXT)
    assert aligned.images is not None
    return aligned.images[row]
