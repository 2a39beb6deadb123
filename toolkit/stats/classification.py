"""Macro F1, and its bootstrap."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from toolkit.stats.draws import BOOTSTRAP_DRAWS, pattern_count_draws


def macro_f1(
    labels: NDArray[np.integer], predictions: NDArray[np.integer], num_labels: int
) -> float:
    """Unweighted mean of F1 over ALL labels of the model, seen or not; NaN without examples.

    Both inputs have shape (examples,). A label that is neither true nor predicted counts 0, so the
    number does not rise when a class is missing from the test set (scikit-learn by itself averages
    over the labels it happens to see).
    """
    if labels.size == 0:
        return math.nan
    all_labels = np.arange(num_labels)
    return float(f1_score(labels, predictions, labels=all_labels, average="macro", zero_division=0))


def macro_f1_statistics(
    labels: NDArray[np.integer], predictions: NDArray[np.integer], num_labels: int
) -> NDArray[np.float64]:
    """What macro F1 is a function of, per example [examples, 2 * num_labels].

    For every label whether it is rightly predicted, then how often it is named: 1 as the true label
    plus 1 as the predicted one. For `score_draws`, with `macro_f1_scores`.
    """
    one_hot = np.eye(num_labels)
    true, predicted = one_hot[labels], one_hot[predictions]
    return np.concatenate([true * predicted, true + predicted], axis=1)


def macro_f1_scores(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Macro F1 [...] of summed `macro_f1_statistics` [..., 2 * num_labels]."""
    right, named = np.split(sums, 2, axis=-1)
    f1 = np.divide(2 * right, named, out=np.zeros_like(named), where=named > 0)
    return f1.mean(axis=-1)


def macro_f1_draws(
    labels: NDArray[np.integer],
    predictions: NDArray[np.integer],
    num_labels: int,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Macro F1 of every system on bootstrap samples of the examples, shape (systems, draws).

    `labels` has shape (examples,), `predictions` (systems, examples). All systems see the same
    samples, so differences between rows are paired (Efron and Tibshirani 1993; Koehn 2004).

    Drawing n examples with replacement only matters through how often each distinct pattern
    (label, prediction of system 1, prediction of system 2, ...) is drawn.
    """
    if predictions.ndim != 2 or labels.shape != predictions.shape[1:] or labels.size == 0:
        raise ValueError(
            "labels must have shape (examples,) and predictions (systems, examples) with at least "
            f"one example, not {labels.shape} and {predictions.shape}"
        )
    patterns, frequency = np.unique(np.vstack([labels, predictions]), axis=1, return_counts=True)
    statistics = [macro_f1_statistics(patterns[0], row, num_labels) for row in patterns[1:]]
    blocks = []
    for counts in pattern_count_draws(frequency, draws, seed):
        weights = counts.astype(np.float64)
        blocks.append(np.stack([macro_f1_scores(weights @ rows) for rows in statistics]))
    return np.concatenate(blocks, axis=1)
