"""Positions: a Transformer sees a set of tokens; these vectors make it a sequence."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from transformers import initialization as init

Encoding = Callable[[Tensor, int], Tensor]


def interleaved_sinusoids(positions: Tensor, dim: int) -> Tensor:
    """The fixed encodings of "Attention Is All You Need", §3.5: […] -> […, dim], float32.

    PE(pos, 2i) = sin(pos / 10000^(2i/dim)) and PE(pos, 2i+1) = cos(pos / 10000^(2i/dim)): sines
    and cosines take turns, as in the paper.
    """
    sines, cosines = _sines_and_cosines(positions, dim)
    vectors = sines.new_empty((*positions.shape, dim))
    vectors[..., 0::2] = sines
    vectors[..., 1::2] = cosines
    return vectors


def sinusoids_in_halves(positions: Tensor, dim: int) -> Tensor:
    """The same numbers in Marian's order: all sines, then all cosines; […] -> […, dim], float32."""
    return torch.cat(_sines_and_cosines(positions, dim), dim=-1)


def _sines_and_cosines(positions: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    # Double precision and this order of operations: rounded, it is Marian's table bit for bit.
    frequencies = 10000.0 ** (torch.arange(0, dim, 2, device=positions.device).double() / dim)
    angles = positions.double()[..., None] / frequencies
    return angles.sin().float(), angles[..., : dim // 2].cos().float()


def sinusoidal_positions(length: int, dim: int) -> Tensor:
    """`interleaved_sinusoids` of positions 0…length-1, as [length, dim]."""
    return interleaved_sinusoids(torch.arange(length), dim).to(torch.get_default_dtype())


class SinusoidalPositions(nn.Embedding):
    """Fixed position vectors (§3.5) for sequences of any length.

    A frozen table, as checkpoints may hold one, of the first `max_length` positions. Positions
    beyond it are computed when asked for: a formula has no end, and the paper chose it for that.

    Args:
        max_length: rows of the table.
        dim: width of a vector.
        encoding: `interleaved_sinusoids` (the paper's) or `sinusoids_in_halves` (Marian's).
    """

    is_fixed = True
    """Read after loading a checkpoint: transformers gives every weight it loads a gradient."""

    def __init__(
        self, max_length: int, dim: int, encoding: Encoding = interleaved_sinusoids
    ) -> None:
        super().__init__(max_length, dim, _freeze=True)
        self.encoding = encoding
        self.reset_buffers()

    def reset_buffers(self) -> None:
        """Fill the table again: what is not in a checkpoint comes out of a meta device empty."""
        positions = torch.arange(self.num_embeddings, device=self.weight.device)
        init.copy_(self.weight, self.encoding(positions, self.embedding_dim))

    def forward(self, length: int, position_ids: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """Vectors [1 or batch, length, dim] of positions 0…length-1, or of `position_ids`."""
        if position_ids is None:
            if length <= self.num_embeddings:
                return self.weight[None, :length]
            position_ids = torch.arange(length, device=self.weight.device)[None]
        # Which ids lie beyond the table is not looked at: that would wait for the GPU and break a
        # compiled graph.
        last = self.num_embeddings - 1
        computed = self.encoding(position_ids, self.embedding_dim).to(self.weight.dtype)
        stored = self.weight[position_ids.clamp(max=last)]
        return torch.where(position_ids[..., None] <= last, stored, computed)


class LearnedPositions(nn.Embedding):
    """One trained vector a position (BERT, "Input/Output Representations", §3)."""

    def forward(self, length: int, position_ids: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """Vectors [1 or batch, length, dim] of positions 0…length-1, or of `position_ids`.

        Raises:
            ValueError: for a position there is no vector for (not looked for on a GPU, which would
                have to wait, nor in a compiled model).
        """
        if position_ids is None:
            position_ids = self.after(0, length)
        elif position_ids.device.type == "cpu" and not torch.compiler.is_compiling():
            check_positions(position_ids, self.num_embeddings)
        return super().forward(position_ids)

    def after(self, past: int | Tensor, length: int, device: torch.device | None = None) -> Tensor:
        """Positions past…past+length-1 as [1, length], for tokens that come after `past` others.

        Args:
            past: how many tokens were before.
            length: how many come now.
            device: where the tokens are; None: where the vectors are. (Those that accelerate keeps
                elsewhere have no device of use but in `forward`.)

        Raises:
            ValueError: if there are not that many.
        """
        # A compiled model has a past that is a tensor: looking at it would break its graph.
        if not isinstance(past, Tensor):
            check_length(past + length, self.num_embeddings, past)
        return torch.arange(length, device=device or self.weight.device)[None] + past


def check_length(length: int, max_length: int, past: int = 0) -> None:
    """Raise ValueError if a sequence, `past` tokens of a cache included, is longer than allowed."""
    if length > max_length:
        cached = f" ({past} of them in the cache)" if past else ""
        raise ValueError(
            f"the input has {length} tokens{cached} but the model has positions for {max_length} "
            f"only (max_position_embeddings): truncate to {max_length} tokens."
        )


def check_positions(position_ids: Tensor, max_length: int) -> None:
    """Raise ValueError if one of `position_ids` is outside 0…max_length-1."""
    outside = position_ids[(position_ids < 0) | (position_ids >= max_length)]
    if outside.numel():
        raise ValueError(
            f"position_ids hold {int(outside[0])} but the model has positions for {max_length} "
            f"tokens only (max_position_embeddings): they must be in 0…{max_length - 1}."
        )
