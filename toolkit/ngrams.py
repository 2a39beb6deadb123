"""What counting reaches: unigram and bigram models, the yardsticks of a language model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def ngram_losses(
    train: Sequence[Sequence[int]], held_out: Sequence[Sequence[int]], vocab_size: int
) -> dict[str, NDArray[np.float64]]:
    """Nats per held-out document of models that only count, over every token but its first.

    "unigram": add-one smoothing, (c(t) + 1) / (N + V). "bigram": the same after the token before,
    (c(u, t) + 1) / (c(u) + V). "interpolated bigram": Witten and Bell 1991, (c(u, t) + T(u) p(t)) /
    (c(u) + T(u)), where T(u) is the number of different tokens seen after u and p the unigram: far
    better where most pairs were never seen, so the one to beat.

    Args:
        train, held_out: token ids of documents, the end of text included.

    Returns:
        An array [documents] for each of the three.
    """
    unigrams = np.bincount(np.concatenate([np.asarray(ids) for ids in train]), minlength=vocab_size)
    before, after, _ = _pairs(train)
    pairs, pair_counts = np.unique(before * vocab_size + after, return_counts=True)
    followed = np.bincount(before, minlength=vocab_size)
    continuations = np.bincount(pairs // vocab_size, minlength=vocab_size)

    u, t, document = _pairs(held_out)
    places = np.searchsorted(pairs, u * vocab_size + t).clip(max=len(pairs) - 1)
    seen = np.where(pairs[places] == u * vocab_size + t, pair_counts[places], 0)
    unigram = (unigrams[t] + 1) / (unigrams.sum() + vocab_size)
    bigram = (seen + 1) / (followed[u] + vocab_size)
    mass = continuations[u]
    with np.errstate(invalid="ignore"):
        mixed = (seen + mass * unigram) / (followed[u] + mass)
    interpolated = np.where(followed[u] > 0, mixed, unigram)
    return {
        name: np.bincount(document, weights=-np.log(probability), minlength=len(held_out)).astype(
            np.float64
        )
        for name, probability in (
            ("unigram", unigram),
            ("bigram", bigram),
            ("interpolated bigram", interpolated),
        )
    }


def _pairs(
    documents: Sequence[Sequence[int]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Every token with a token before it in its document: before, token, document."""
    before = np.concatenate([np.asarray(ids[:-1], dtype=np.int64) for ids in documents])
    after = np.concatenate([np.asarray(ids[1:], dtype=np.int64) for ids in documents])
    lengths = [len(ids) - 1 for ids in documents]
    return before, after, np.repeat(np.arange(len(documents)), lengths)
