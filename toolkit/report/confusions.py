"""Who took what for what: the counts behind a report's confusion matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.comparison.compare import Comparison, Row
from toolkit.plots import MOST_CLASSES

_MOST_MATRICES = 6
_MOST_CONFUSIONS = 8


@dataclass(frozen=True)
class FrequentConfusion:
    """Two classes that are mistaken often: `counts` how often by each method that is shown."""

    truth: str
    answer: str
    counts: list[int]


@dataclass(frozen=True)
class Confusions:
    """Counts of the best methods, summed over their seeds.

    Args:
        rows: the methods, `of` so many.
        names: of the classes.
        matrices: counts [truth, answer] of each method; None with more classes than a picture
            holds.
        frequent: the most frequent confusions instead, then.
    """

    rows: list[Row]
    of: int
    names: list[str]
    matrices: list[NDArray[np.int64]] | None
    frequent: list[FrequentConfusion]


def confusions(comparison: Comparison) -> Confusions | None:
    """Of a classification; None for other tasks."""
    classes = comparison.view.classes
    if classes is None:
        return None
    rows = comparison.rows[:_MOST_MATRICES]
    matrices = [_matrix(comparison, row) for row in rows]
    few = len(classes.names) <= MOST_CLASSES
    return Confusions(
        rows=rows,
        of=len(comparison.rows),
        names=classes.names,
        matrices=matrices if few else None,
        frequent=[] if few else _frequent(matrices, classes.names),
    )


def _matrix(comparison: Comparison, row: Row) -> NDArray[np.int64]:
    """Counts [truth, answer], summed over seeds."""
    classes = comparison.view.classes
    assert classes is not None
    size = len(classes.names)
    codes = classes.labels * size + classes.predictions[row.method.places]
    return np.bincount(codes.ravel(), minlength=size * size).reshape(size, size)


def _frequent(matrices: list[NDArray[np.int64]], names: list[str]) -> list[FrequentConfusion]:
    """The mistakes made most often by all methods together."""
    total = np.sum(matrices, axis=0)
    np.fill_diagonal(total, 0)
    found = []
    for code in np.argsort(-total, axis=None, kind="stable")[:_MOST_CONFUSIONS]:
        truth, answer = divmod(int(code), len(names))
        if total[truth, answer]:
            counts = [int(matrix[truth, answer]) for matrix in matrices]
            found.append(FrequentConfusion(names[truth], names[answer], counts))
    return found
