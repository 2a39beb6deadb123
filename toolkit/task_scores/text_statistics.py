"""BLEU and chrF as functions of sums over sentences.

sacrebleu counts; only its last step, from the sums to the score, is written again here, for many
sums at once: a bootstrap has thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLEU_ORDERS = 4
_CHRF_RECALL_WEIGHT = 4.0  # beta of 2, squared


def bleu_of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """BLEU from 0 to 100 (Papineni et al. 2002), exponentially smoothed as sacrebleu's default.

    0 where nothing matches or an order has no n-gram at all.

    Args:
        sums: [..., 10]: length of hypotheses and references, n-grams that match of order 1 to 4,
            n-grams of the hypotheses of order 1 to 4.
    """
    made, expected = sums[..., 0], sums[..., 1]
    right, total = sums[..., 2 : 2 + _BLEU_ORDERS], sums[..., 2 + _BLEU_ORDERS :]
    # Every order without a match halves once more what it and the next such orders are given.
    halvings = np.cumsum((right == 0) & (total > 0), axis=-1)
    matched = np.where(right > 0, right, 0.5**halvings)
    precision = np.divide(matched, total, out=np.zeros_like(total), where=total > 0)
    with np.errstate(divide="ignore"):
        mean = np.exp(np.log(100 * precision).mean(-1))
    too_short = np.divide(expected, made, out=np.full_like(made, np.inf), where=made > 0)
    brevity = np.where(made < expected, np.exp(1 - too_short), 1.0)
    return np.where(right.any(-1), brevity * mean, 0.0)


def chrf_of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """chrF from 0 to 100 (Popović 2015), over the orders that both sides have n-grams of.

    Args:
        sums: [..., 3 x orders]: for each order n-grams of the hypotheses, of the references, and
            those that match.
    """
    made, expected, right = np.moveaxis(sums.reshape(*sums.shape[:-1], -1, 3), -1, 0)
    there = (made > 0) & (expected > 0)
    orders = np.maximum(there.sum(-1), 1)
    precision, recall = (
        np.divide(right, total, out=np.zeros_like(right), where=there).sum(-1) / orders
        for total in (made, expected)
    )
    weighted = _CHRF_RECALL_WEIGHT * precision + recall
    top = 100 * (1 + _CHRF_RECALL_WEIGHT) * precision * recall
    return np.divide(top, weighted, out=np.zeros_like(top), where=weighted > 0)


class SentenceStatistics:
    """What sacrebleu counts in every sentence; what several runs translated alike is counted once.

    Args:
        make: of sacrebleu's metric, such as `CHRF`.
        references: one for each sentence.
    """

    def __init__(self, make: Callable[..., Any], references: Sequence[str]) -> None:
        self._metric = make(references=[list(references)])
        self._known: dict[tuple[int, str], list[int]] = {}

    def __call__(self, hypotheses: Sequence[str]) -> NDArray[np.float64]:
        """[sentences, k]; the score of a corpus is a function of the sums."""
        return np.array(
            [self._count(row, text) for row, text in enumerate(hypotheses)], dtype=np.float64
        )

    def _count(self, row: int, hypothesis: str) -> list[int]:
        found = self._known.get((row, hypothesis))
        if found is None:
            # sacrebleu has no public way to these counts; a test holds that they are its scores'.
            metric = self._metric
            found = metric._compute_segment_statistics(
                metric._preprocess_segment(hypothesis), metric._ref_cache[row]
            )
            self._known[row, hypothesis] = found
        return found
