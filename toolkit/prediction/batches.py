"""Batches of similar length, every example once, results in the order of the examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from toolkit.batching import Collate

CPU_TOKENS, GPU_TOKENS = 2048, 32768
"""Tokens of a batch where nothing is asked for: a CPU is busy with few, and more only pad more."""

Advance = Callable[[int], None]
"""Called with the number of examples done, for a progress display."""


@dataclass(frozen=True)
class BatchLimits:
    """How much is computed at once, at most.

    Args:
        rows: examples of a batch.
        tokens: positions of a batch, padding included, but for a single example of more; None:
            what suits the device.
    """

    rows: int = 64
    tokens: int | None = None

    def on(self, device: torch.device) -> int:
        """Tokens of a batch on a device."""
        return self.tokens or (GPU_TOKENS if device.type == "cuda" else CPU_TOKENS)


def sorted_batches(lengths: Sequence[int] | np.ndarray, rows: int, tokens: int) -> list[np.ndarray]:
    """Numbers of the examples of every batch, the longest first; each example exactly once."""
    sizes = np.asarray(lengths)
    order = np.argsort(-sizes, kind="stable")
    batches, start = [], 0
    while start < len(order):
        longest = max(int(sizes[order[start]]), 1)
        stop = start + max(1, min(rows, tokens // longest))
        batches.append(order[start:stop])
        start = stop
    return batches


def predict_sorted(
    model: nn.Module,
    examples: Sequence[dict[str, Any]],
    *,
    lengths: Sequence[int],
    collate: Collate,
    compute: Callable[[nn.Module, dict[str, Tensor]], Mapping[str, Any]],
    limits: BatchLimits,
    advance: Advance,
    owners: Sequence[int] | None = None,
) -> dict[str, list[Any]]:
    """Run a model over examples in batches of similar length, the longest first.

    Longest first, so that what does not fit into memory fails at once.

    Args:
        model: in eval mode.
        lengths: tokens of every example.
        collate: examples to one batch on the CPU.
        compute: per-example results of a batch: tensors or lists [batch, ...].
        limits: of a batch.
        owners: where several examples make up a row, the row of each; a row is done when its last
            one is. None: each example is a row.

    Returns:
        The results by name, each a list with one entry per example, in the order of the examples.
    """
    device = next(model.parameters()).device
    results: dict[str, list[Any]] = {}
    left = Counter(range(len(examples)) if owners is None else owners)
    with torch.inference_mode():
        for rows in sorted_batches(lengths, limits.rows, limits.on(device)):
            batch = collate([{**examples[row], "index": int(row)} for row in rows])
            batch = {name: value.to(device) for name, value in batch.items()}
            for name, values in compute(model, batch).items():
                found = values.cpu().numpy() if isinstance(values, Tensor) else values
                column = results.setdefault(name, [None] * len(examples))
                for row, value in zip(rows, found, strict=True):
                    column[row] = value
            before = len(left)
            left -= Counter(int(row) if owners is None else owners[row] for row in rows)
            advance(before - len(left))
    return results
