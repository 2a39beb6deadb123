"""Attention over all layers at once: attention rollout (Abnar and Zuidema 2020, section 3)."""

from __future__ import annotations

import torch
from torch import Tensor


def rollout(weights: Tensor) -> Tensor:
    """How much of every input token reaches every position, if attention were all that mixes them.

    arXiv:2005.00928, equation 1: of each layer the heads are averaged; half of what a position
    holds is what it held before (the residual connection), A = 0.5 W + 0.5 I; the layers are
    multiplied, the last one leftmost. Rows are made to sum to 1 once more after rounding.

    Args:
        weights: of self-attention [layers, heads, tokens, tokens], rows sum to 1.

    Returns:
        float32 [layers, tokens, tokens]: after the first layer, after the first two, and so on; a
        row says of which input tokens a position is made.

    Raises:
        ValueError: the attention is from one text to another.
    """
    if weights.ndim != 4 or weights.shape[2] != weights.shape[3]:
        raise ValueError(
            f"rollout needs weights [layers, heads, tokens, tokens], not {list(weights.shape)}"
        )
    mean = weights.double().mean(1)
    mixed = 0.5 * mean + 0.5 * torch.eye(mean.shape[-1], dtype=torch.float64)
    mixed = mixed / mixed.sum(-1, keepdim=True)
    found = [mixed[0]]
    for layer in mixed[1:]:
        found.append(layer @ found[-1])
    return torch.stack(found).float()
