"""Multi-head attention by hand: the chapter's exercise ("Attention Is All You Need", §3.2).

Nothing but `exp`, `max`, `sum` and matrix products: no `nn.Linear`, no ready-made softmax, no fused
kernel. It computes what `layers.attention` computes and is there to be read.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from scratch_models.layers.attention import MultiHeadAttention


def project(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W^T + b: [batch, length, inputs] and [outputs, inputs] -> [batch, length, outputs]."""
    return x @ weight.T + bias


def softmax(scores: Tensor) -> Tensor:
    """exp(s_i) / sum_j exp(s_j) over the last dimension.

    The largest score is subtracted first: the quotient stays the same and exp cannot overflow.
    """
    exponentials = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


def attention(query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None = None) -> Tensor:
    """Equation (1): softmax(QK^T / sqrt(d_k)) V.

    Args:
        query: [batch, heads, queries, head_dim].
        key: [batch, heads, keys, head_dim].
        value: [batch, heads, keys, head_dim].
        visible: boolean, broadcastable to [batch, heads, queries, keys]; None shows everything.

    Returns:
        [batch, heads, queries, head_dim].
    """
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if visible is not None:
        scores = torch.where(visible, scores, torch.finfo(scores.dtype).min)
    return softmax(scores) @ value


class MultiHeadAttentionByHand(nn.Module):
    """Concat(head_1, …, head_h) W^O, every weight a plain matrix (§3.2.2).

    Args:
        hidden_size: d_model.
        num_heads: h; divides `hidden_size`.
    """

    def __init__(self, hidden_size: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = hidden_size // num_heads

        def matrix() -> nn.Parameter:
            return nn.Parameter(torch.randn(hidden_size, hidden_size) * hidden_size**-0.5)

        self.query_weight, self.query_bias = matrix(), nn.Parameter(torch.zeros(hidden_size))
        self.key_weight, self.key_bias = matrix(), nn.Parameter(torch.zeros(hidden_size))
        self.value_weight, self.value_bias = matrix(), nn.Parameter(torch.zeros(hidden_size))
        self.output_weight, self.output_bias = matrix(), nn.Parameter(torch.zeros(hidden_size))

    @classmethod
    def from_module(cls, module: MultiHeadAttention) -> MultiHeadAttentionByHand:
        """The same attention by hand, with copies of the weights of `module`."""
        by_hand = cls(module.num_heads * module.head_dim, module.num_heads)
        by_hand.load_state_dict(
            {name.replace(".", "_"): tensor for name, tensor in module.state_dict().items()}
        )
        return by_hand

    def forward(self, x: Tensor, visible: Tensor | None = None) -> Tensor:
        """Attend within a batch of sequences.

        Args:
            x: [batch, length, hidden_size].
            visible: boolean [batch, length]; False hides a position (padding) from every query.

        Returns:
            [batch, length, hidden_size].
        """
        query = self.split_heads(project(x, self.query_weight, self.query_bias))
        key = self.split_heads(project(x, self.key_weight, self.key_bias))
        value = self.split_heads(project(x, self.value_weight, self.value_bias))
        heads = attention(query, key, value, None if visible is None else visible[:, None, None, :])
        concatenated = heads.transpose(1, 2).flatten(2)  # [batch, length, hidden_size]
        return project(concatenated, self.output_weight, self.output_bias)

    def split_heads(self, x: Tensor) -> Tensor:
        """[batch, length, hidden_size] -> [batch, heads, length, head_dim]."""
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)
