"""Positions: a Transformer sees a set of tokens; these vectors make it a sequence."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import initialization as init


def sinusoidal_positions(length: int, dim: int) -> Tensor:
    """The fixed encodings of "Attention Is All You Need", §3.5, as [length, dim].

    PE(pos, 2i) = sin(pos / 10000^(2i/dim)) and PE(pos, 2i+1) = cos(pos / 10000^(2i/dim)): sines
    and cosines take turns, as in the paper. (Some checkpoints lay all sines before all cosines.)
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    table = torch.zeros(length, dim, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency[: dim // 2])
    return table.to(torch.get_default_dtype())


class SinusoidalPositions(nn.Module):
    """Fixed position vectors for sequences of up to `max_length` tokens (§3.5)."""

    def __init__(self, max_length: int, dim: int) -> None:
        super().__init__()
        self.table = nn.Buffer(sinusoidal_positions(max_length, dim), persistent=False)

    def reset_buffers(self) -> None:
        """Fill the table again: what is not in a checkpoint comes out of a meta device empty."""
        init.copy_(self.table, sinusoidal_positions(*self.table.shape).to(self.table.dtype))

    def forward(self, length: int, position_ids: Tensor | None = None) -> Tensor:
        """Vectors [1 or batch, length, dim] of positions 0…length-1, or of `position_ids`."""
        if position_ids is not None:
            return self.table[position_ids]
        check_length(length, self.table.shape[0])
        return self.table[None, :length]


class LearnedPositions(nn.Embedding):
    """One trained vector a position (BERT, "Input/Output Representations", §3)."""

    def forward(self, length: int, position_ids: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """Vectors [1 or batch, length, dim] of positions 0…length-1, or of `position_ids`."""
        if position_ids is None:
            check_length(length, self.num_embeddings)
            position_ids = torch.arange(length, device=self.weight.device)[None]
        return super().forward(position_ids)


def check_length(length: int, max_length: int) -> None:
    """Raise ValueError if a sequence has more tokens than there are positions."""
    if length > max_length:
        raise ValueError(
            f"the input has {length} tokens but the model has positions for {max_length} only "
            f"(max_position_embeddings): truncate to {max_length} tokens."
        )
