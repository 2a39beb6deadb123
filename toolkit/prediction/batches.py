"""Batches of similar length, every example once, results in the order of the examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from toolkit.batching import Collate, evaluation_batches

Advance = Callable[[int], None]
"""Called with the number of examples done, for a progress display."""


def predict_sorted(
    model: nn.Module,
    examples: Sequence[dict[str, Any]],
    *,
    lengths: Sequence[int] | None,
    collate: Collate,
    compute: Callable[[nn.Module, dict[str, Tensor]], Mapping[str, Any]],
    batch_size: int,
    advance: Advance,
    owners: Sequence[int] | None = None,
) -> dict[str, list[Any]]:
    """Run a model over examples in batches of similar length, the longest first.

    Longest first, so that what does not fit into memory fails at once.

    Args:
        model: in eval mode.
        lengths: tokens of every example; None: they all have one size (images).
        collate: examples to one batch on the CPU.
        compute: per-example results of a batch: tensors or lists [batch, ...].
        batch_size: examples at once.
        owners: where several examples make up a row, the row of each; a row is done when its last
            one is. None: each example is a row.

    Returns:
        The results by name, each a list with one entry per example, in the order of the examples.
    """
    device = next(model.parameters()).device
    sizes = None if lengths is None else np.asarray(lengths)
    results: dict[str, list[Any]] = {}
    left = Counter(range(len(examples)) if owners is None else owners)
    with torch.inference_mode():
        for rows in evaluation_batches(len(examples), batch_size, 0, 1, sizes):
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
