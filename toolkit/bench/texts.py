"""Batches of texts as long as reviews are: most of them short, a few up to the limit."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

MEAN, SPREAD, LONGEST = 95, 0.6, 256
"""Tokens of a text: log-normal with this mean and standard deviation of its logarithm, cut off."""
BATCH = 32
POOL = 50 * BATCH
"""Texts that batches are chosen from; sorted batches are sorted within so many."""
VOCABULARY = 21_128
"""Of bert-base-chinese."""

Lengths = list[np.ndarray]
"""Tokens of every text, batch by batch."""


def review_lengths(count: int) -> np.ndarray:
    """Tokens of so many texts, the same every time."""
    generator = np.random.default_rng(0)
    drawn = generator.lognormal(np.log(MEAN) - SPREAD**2 / 2, SPREAD, count)
    return np.clip(drawn.round().astype(int), 4, LONGEST)


def random_batches(count: int) -> Lengths:
    """The batches of the pool, in the order they were drawn, whose padding is nearest its mean."""
    batches = review_lengths(POOL).reshape(-1, BATCH)
    padding = batches.max(1) * BATCH / batches.sum(1)
    mean = batches.max(1).sum() * BATCH / batches.sum()
    return list(batches[np.argsort(abs(padding - mean), kind="stable")[:count]])


def sorted_batches(count: int) -> Lengths:
    """Batches of the pool sorted by length: evenly taken, from short texts to long ones."""
    batches = np.sort(review_lengths(POOL)).reshape(-1, BATCH)
    return list(batches[(np.arange(count) * 2 + 1) * len(batches) // (2 * count)])


def full_batches(count: int) -> Lengths:
    """Batches without padding."""
    return [np.full(BATCH, MEAN)] * count


def make_batch(lengths: np.ndarray, labels: int, seed: int) -> dict[str, Tensor]:
    """Random token ids and labels, padded to the longest text."""
    generator = torch.Generator().manual_seed(seed)
    rows, longest = len(lengths), int(lengths.max())
    mask = (torch.arange(longest)[None] < torch.from_numpy(lengths)[:, None]).long()
    ids = torch.randint(1000, VOCABULARY, (rows, longest), generator=generator)
    return {
        "input_ids": ids * mask,
        "attention_mask": mask,
        "token_type_ids": torch.zeros_like(ids),
        "labels": torch.randint(0, labels, (rows,), generator=generator),
    }


def make_batches(lengths: Lengths, labels: int = 2) -> list[dict[str, Tensor]]:
    """One batch each."""
    return [make_batch(one, labels, seed) for seed, one in enumerate(lengths)]


def count_tokens(lengths: Lengths) -> tuple[int, int]:
    """Without padding and with it."""
    return sum(int(one.sum()) for one in lengths), sum(int(one.max()) * len(one) for one in lengths)
