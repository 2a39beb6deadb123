"""BLEU and chrF as functions of sums over sentences.

What sacrebleu counts, and its last step, from the sums to the score, are written again here for
many at once: a report has hundred thousands of sentences, its bootstrap thousands of sums.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

from toolkit.task_scores.ngram_counts import ReferenceNgrams, Symbols, ngram_numbers

_BLEU_ORDERS = 4
_CHRF_ORDERS = 6
_CHRF_RECALL_WEIGHT = 4.0  # beta of 2, squared
_SPLIT_AT_SIGNS = ("13a", "zh", "none", "char")
"""Tokenisations that split at signs, digits and Chinese characters, which have no case."""
_CASE_MATTERS = set("&<Σ\u2126\u212a\u212b")
"""The names of entities and of a mark of skipped text; a sigma is another one at a word's end; the
signs of ohm, kelvin and angstrom are signs before they are made small, and letters after."""


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


class BleuStatistics:
    """What sacrebleu counts for BLEU in every sentence, and `bleu_of_sums` needs.

    sacrebleu splits the texts; the n-grams of all sentences are counted at once, which takes a
    tenth of the time.

    Args:
        metric: sacrebleu's, with the tokenisation and the case that are wanted.
        references: one for each sentence.
    """

    def __init__(self, metric: BLEU, references: Sequence[str]) -> None:
        self._metric = metric
        self._number: dict[str, int] = {}
        texts = self.words(references)
        for word in (word for words in texts for word in words):
            self._number.setdefault(word, len(self._number))
        self._lengths = np.array([len(words) for words in texts], dtype=np.int64)
        self._ngrams = ReferenceNgrams(
            [self._numbers(words) for words in texts], len(self._number), _BLEU_ORDERS
        )

    def __call__(self, hypotheses: Sequence[str]) -> NDArray[np.float64]:
        """[sentences, 10]; the score of a corpus is a function of the sums."""
        return self.of_words(self.words(hypotheses))

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        """How the metric splits each text."""
        # sacrebleu has no public way to its words; a test holds that the counts are its scores'.
        return [self._metric._preprocess_segment(text).split() for text in texts]

    def words_in_lower_case(
        self, texts: Sequence[str], split: Sequence[list[str]]
    ) -> list[list[str]]:
        """As `words`, of a metric that makes lower case of the texts before.

        Splitting takes most of the time, and most texts are split at the same places either way.

        Args:
            split: what a metric with the same tokenisation, but with its case, splits them into.
        """
        if self._metric.tokenizer_signature not in _SPLIT_AT_SIGNS:
            return self.words(texts)
        return [
            self.words([text])[0]
            if len(text) != len(text.lower()) or not _CASE_MATTERS.isdisjoint(text)
            else [word.lower() for word in words]
            for text, words in zip(texts, split, strict=True)
        ]

    def of_words(self, split: Sequence[list[str]]) -> NDArray[np.float64]:
        """As for the texts that were split into these words."""
        texts = [self._numbers(words) for words in split]
        lengths = np.array([len(words) for words in texts], dtype=np.int64)
        counts = [
            np.stack([lengths, self._lengths], axis=-1),
            self._ngrams.matches(texts),
            ngram_numbers(lengths, _BLEU_ORDERS),
        ]
        return np.concatenate(counts, axis=-1).astype(np.float64)

    def _numbers(self, words: Sequence[str]) -> Symbols:
        return np.array([self._number.get(word, -1) for word in words], dtype=np.int64)


class ChrfStatistics:
    """Likewise for chrF and `chrf_of_sums`: n-grams of characters without white space.

    Args:
        references: one for each sentence.
    """

    def __init__(self, references: Sequence[str]) -> None:
        texts = [_characters(text) for text in references]
        self._alphabet = np.unique(np.concatenate([*texts, np.empty(0, dtype=np.int64)]))
        self._ngrams = ReferenceNgrams(
            [self._numbers(text) for text in texts], len(self._alphabet), _CHRF_ORDERS
        )
        self._made = ngram_numbers(np.array([len(text) for text in texts]), _CHRF_ORDERS)

    def __call__(self, hypotheses: Sequence[str]) -> NDArray[np.float64]:
        """[sentences, 18]; the score of a corpus is a function of the sums."""
        texts = [self._numbers(_characters(text)) for text in hypotheses]
        made = ngram_numbers(np.array([len(text) for text in texts]), _CHRF_ORDERS)
        # What a reference is too short for is not counted against a hypothesis.
        made = np.where(self._made > 0, made, 0)
        counts = np.stack([made, self._made, self._ngrams.matches(texts)], axis=-1)
        return counts.reshape(len(texts), -1).astype(np.float64)

    def _numbers(self, characters: Symbols) -> Symbols:
        if not len(self._alphabet):
            return np.full(len(characters), -1)
        places = np.searchsorted(self._alphabet, characters)
        places[places == len(self._alphabet)] = 0
        numbers: Symbols = np.where(self._alphabet[places] == characters, places, -1)
        return numbers


def _characters(text: str) -> Symbols:
    encoded = "".join(text.split()).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(encoded, dtype="<u4").astype(np.int64)
