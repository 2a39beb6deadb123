"""Test examples to show in a report, drawn by chance so that nobody picks the flattering ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from toolkit.comparability import AlignedRuns
from toolkit.compare import Comparison
from toolkit.report import wording

LONGEST_TEXT = 160


@dataclass(frozen=True)
class Answer:
    """What one run answered to one example; `confidence` is None where it was not recorded."""

    title: str
    label: str
    right: bool
    confidence: float | None


@dataclass(frozen=True)
class Example:
    """One test example with every run's answer, in the order of the table.

    `shown` is its text, or the file and row of its image.
    """

    id: str
    shown: str
    label: str
    answers: list[Answer]


@dataclass(frozen=True)
class ExampleDraw:
    """The examples and, in words, how they were chosen."""

    examples: list[Example]
    how: str


def draw_examples(
    comparison: Comparison, total: int = 5, disagreeing: int = 2, seed: int = 0
) -> ExampleDraw:
    """Draw `total` examples, `disagreeing` of them from those with different answers.

    First from the examples on which the runs disagree, then from all that are left. Long texts are
    shortened. Raises ValueError when the runs recorded neither texts nor images.
    """
    aligned = comparison.aligned
    if aligned.texts is None and aligned.images is None:
        raise ValueError("the runs recorded neither texts nor images")
    rng = np.random.default_rng(seed)
    differ = np.flatnonzero((aligned.predictions != aligned.predictions[0]).any(axis=0))
    chosen = rng.choice(differ, min(disagreeing, len(differ)), replace=False).tolist()
    left = np.setdiff1d(np.arange(comparison.n), chosen)
    chosen += rng.choice(left, min(total - len(chosen), len(left)), replace=False).tolist()
    forced = min(disagreeing, len(differ))
    how = (
        f"Drawn by chance (seed {seed}), not picked: {forced} from the {len(differ):,} examples on "
        f"which the runs give different answers, {len(chosen) - forced} from all the others, so "
        "disagreement is more frequent here than in the test set."
    )
    if aligned.texts is not None:
        how += f" Texts longer than {LONGEST_TEXT} characters are shortened (…)."
    return ExampleDraw([_example(comparison, row) for row in chosen], how)


def _example(comparison: Comparison, row: int) -> Example:
    aligned = comparison.aligned
    answers = []
    for index, table_row in enumerate(comparison.rows):
        given = int(aligned.predictions[index, row])
        confidence = float(aligned.confidence[index, row])
        answers.append(
            Answer(
                title=table_row.title,
                label=aligned.label_names[given],
                right=given == int(aligned.labels[row]),
                confidence=confidence if math.isfinite(confidence) else None,
            )
        )
    return Example(
        id=aligned.ids[row],
        shown=_shown(aligned, row),
        label=aligned.label_names[aligned.labels[row]],
        answers=answers,
    )


def _shown(aligned: AlignedRuns, row: int) -> str:
    if aligned.texts is not None:
        return wording.shortened(aligned.texts[row], LONGEST_TEXT)
    assert aligned.images is not None
    return aligned.images[row]
