"""A task's runs on the same examples, as comparison and report see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from toolkit.task_scores.measures import Measure

_BUCKETS = 4


@dataclass(frozen=True)
class Breakdown:
    """A measure on parts of the test set: by class, by length.

    Args:
        title: such as "by length of the text".
        note: how the parts were made and what the numbers are, in a sentence.
        measure: whose unit the values have.
        label: what the values are, where they are not the measure itself ("recall").
        names: of the parts.
        examples: in each part [parts].
        values: [parts, runs]; NaN where undefined.
    """

    title: str
    note: str
    measure: Measure
    label: str
    names: list[str]
    examples: list[int]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Classes:
    """Label ids of a classification: `labels` [examples], `predictions` [runs, examples]."""

    names: list[str]
    labels: NDArray[np.int64]
    predictions: NDArray[np.int64]


@dataclass(frozen=True)
class TaskView:
    """Runs of one task, scored on the same examples in the same order.

    Args:
        noun: what an example is, in the plural: "texts", "images", "sentences".
        measures: the first decides; the others are shown.
        statistics: of a measure's key and a run's place, the array [examples, k] whose sum over
            examples gives the score.
        clusters: [examples] numbers of what examples belong to (documents), or None; the bootstrap
            draws whole clusters. `cluster_noun` is their name in the plural.
        right: [runs, examples], or None where examples are not right or wrong.
        right_means: what "right" means where it is not obvious ("all tags of the sentence").
        quality: [runs, examples], the higher the better: who did better on an example, and how
            much. `quality_label` says what it is.
        loss: [runs, examples], NaN where a run recorded none; or None.
        truth: what is right, as shown; one per example. `truth_name` is what it is called.
        answers: [runs][examples], as shown.
        passages: what is shown of the text that each example is about, where it was recorded.
        confidence: [runs, examples] probability of the answer, NaN where unknown; or None.
        facts: sentences about the test set ("Labels: …").
        single_answers: runs that gave one and the same answer to everything: place -> the answer.
        chance: what needs no model ("always answering 'good'"), and its value of the first measure.
    """

    task: str
    noun: str
    measures: list[Measure]
    statistics: Callable[[str, int], NDArray[np.float64]]
    truth: list[str]
    answers: list[list[str]]
    quality: NDArray[np.float64]
    quality_label: str
    right: NDArray[np.bool_] | None = None
    right_means: str | None = None
    loss: NDArray[np.float64] | None = None
    truth_name: str = "Truth"
    passages: list[str] | None = None
    confidence: NDArray[np.float64] | None = None
    clusters: NDArray[np.int64] | None = None
    cluster_noun: str | None = None
    classes: Classes | None = None
    breakdowns: list[Breakdown] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    single_answers: dict[int, str] = field(default_factory=dict)
    chance: tuple[str, float] | None = None

    @property
    def primary(self) -> Measure:
        """The measure that decides."""
        return self.measures[0]


def measure_on(
    view_statistics: Callable[[str, int], NDArray[np.float64]],
    measure: Measure,
    runs: int,
    parts: Sequence[NDArray[np.bool_]],
) -> NDArray[np.float64]:
    """A measure on parts of the examples, given as masks: [parts, runs]."""
    values = np.empty((len(parts), runs))
    masks = np.stack(parts).astype(np.float64)  # [parts, examples]
    for run in range(runs):
        values[:, run] = measure.score(masks @ view_statistics(measure.key, run))
    return values


def length_parts(lengths: NDArray[np.int64]) -> tuple[list[str], list[NDArray[np.bool_]]]:
    """Examples in four groups of about equal size by length: names such as "21–48", and masks.

    Equal lengths stay together, so there may be fewer groups.
    """
    bounds = np.unique(np.quantile(lengths, np.arange(1, _BUCKETS) / _BUCKETS, method="lower"))
    group = np.searchsorted(bounds, lengths, side="left")
    names, masks = [], []
    for number in np.unique(group):
        mask = group == number
        low, high = int(lengths[mask].min()), int(lengths[mask].max())
        names.append(f"{low:,}" if low == high else f"{low:,}–{high:,}")
        masks.append(mask)
    return names, masks


def length_breakdown(
    statistics: Callable[[str, int], NDArray[np.float64]],
    measure: Measure,
    runs: int,
    lengths: NDArray[np.int64],
    what: str,
) -> Breakdown:
    """The measure by length of the input.

    Args:
        what: is measured in what, such as "length of the text in characters".
    """
    names, masks = length_parts(lengths)
    return Breakdown(
        title=f"By {what}",
        note="Groups of about equal size; equal lengths stay together.",
        measure=measure,
        label=measure.label,
        names=names,
        examples=[int(mask.sum()) for mask in masks],
        values=measure_on(statistics, measure, runs, masks),
    )
