"""Cross entropy over a vocabulary without the logits of all tokens at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

IGNORED = -100
CHUNK = 512
"""Tokens whose logits are held at once: 103 MB for GPT-2's vocabulary in float32."""


def next_token_loss(
    hidden_states: Tensor, head: nn.Module, labels: Tensor, num_items_in_batch: Any = None
) -> Tensor:
    """The loss of transformers' `ForCausalLMLoss`, whose logits nobody else wants to see.

    Logits are computed where something is predicted, in chunks; their gradient is made together
    with them, so that none of them is kept or computed twice.

    Args:
        hidden_states: [batch, length, hidden_size].
        head: [..., hidden_size] -> [..., vocabulary].
        labels: [batch, length], shifted here; -100 where none is asked.
        num_items_in_batch: divide the sum by that; None: by the number of labels.
    """
    targets = F.pad(labels, (0, 1), value=IGNORED)[..., 1:].flatten().to(hidden_states.device)
    asked = targets != IGNORED
    targets, states = targets[asked], hidden_states.flatten(0, -2)[asked]
    total = summed_cross_entropy(states, head, targets)
    return total / (len(targets) if num_items_in_batch is None else num_items_in_batch)


def summed_cross_entropy(states: Tensor, head: nn.Module, targets: Tensor) -> Tensor:
    """Sum of the cross entropies of the head's logits, in single precision.

    Args:
        states: [tokens, hidden_size].
        targets: [tokens].
    """
    if isinstance(head, nn.Linear) and chunks_work(states, head):
        chunks = nn.LinearCrossEntropyOptions(batch_chunk_size=CHUNK, chunking_method=None)
        return F.linear_cross_entropy(
            states, head.weight, targets, linear_bias=head.bias, reduction="sum", options=chunks
        )
    return F.cross_entropy(head(states).float(), targets, reduction="sum")


def chunks_work(states: Tensor, head: nn.Linear) -> bool:
    """Whether this PyTorch can do it, and it pays: there is more than one chunk.

    Not for a head that is more than a matrix (an adapter), nor under autocast, whose precision the
    operator does not take up, nor in compiled code.
    """
    return (
        hasattr(F, "linear_cross_entropy")
        and type(head) is nn.Linear
        and len(states) > CHUNK
        and states.dtype == head.weight.dtype == torch.float32
        and not torch.is_autocast_enabled(states.device.type)
        and not torch.compiler.is_compiling()
    )
