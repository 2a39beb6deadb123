"""The position-wise feed-forward network ("Attention Is All You Need", §3.3)."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn


class FeedForward(nn.Module):
    """FFN(x) = activation(x W_1 + b_1) W_2 + b_2, the same at every position.

    Args:
        hidden_size: d_model.
        inner_size: d_ff, the width between the two layers.
        activation: the paper's is ReLU, BERT's GELU.
    """

    def __init__(
        self, hidden_size: int, inner_size: int, activation: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.up = nn.Linear(hidden_size, inner_size)
        self.activation = activation
        self.down = nn.Linear(inner_size, hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[…, hidden_size] -> […, hidden_size]."""
        return self.down(self.activation(self.up(hidden_states)))
