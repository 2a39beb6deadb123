"""The LSTM baseline without packed sequences, which ONNX does not know."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn


def without_packing(model: Any) -> Any:
    """A copy that computes the same from plain tensors.

    Args:
        model: `ScratchLSTMForSequenceClassification`, in evaluation mode.
    """
    unpacked = copy.deepcopy(model)
    both_ways = BothWays(unpacked.lstm)
    unpacked.lstm = both_ways
    unpacked.encode = both_ways.encode
    return unpacked


class BothWays(nn.Module):
    """A bidirectional LSTM as layers of one direction each.

    The real tokens stand at the start of a row, so that what comes behind them changes nothing of
    theirs; the second direction reads them in reverse order, padding again behind.
    """

    def __init__(self, lstm: nn.LSTM) -> None:
        super().__init__()
        layers = range(lstm.num_layers)
        self.forwards = nn.ModuleList(_one_way(lstm, layer, "") for layer in layers)
        self.backwards = nn.ModuleList(_one_way(lstm, layer, "_reverse") for layer in layers)

    def encode(self, embedded: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """As `ScratchLSTMForSequenceClassification.encode`: [batch, length, size], [batch, length].

        Returns hidden states and which of them are real.
        """
        length = real.shape[1]
        # Sorted by real or not, then by place: a stable sort without asking for one.
        places = torch.arange(length, device=real.device)
        order = torch.argsort(torch.where(real, places, places + length), dim=1)
        hidden, real = _reordered(embedded, order), real.gather(1, order)
        last = real.sum(1, keepdim=True) - 1
        reverse = torch.where(real, last - places, places)
        for forward, backward in zip(self.forwards, self.backwards, strict=True):
            ahead, _ = forward(hidden)
            behind, _ = backward(_reordered(hidden, reverse))
            hidden = torch.cat([ahead, _reordered(behind, reverse)], dim=-1)
        return hidden, real


def _reordered(hidden: Tensor, order: Tensor) -> Tensor:
    return hidden.gather(1, order.unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))


def _one_way(lstm: nn.LSTM, layer: int, suffix: str) -> nn.LSTM:
    """One direction of one layer, with its weights."""
    inputs = lstm.input_size if layer == 0 else 2 * lstm.hidden_size
    single = nn.LSTM(inputs, lstm.hidden_size, batch_first=True)
    weights = {
        f"{name}_l0": getattr(lstm, f"{name}_l{layer}{suffix}")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    }
    single.load_state_dict(weights)
    return single.eval()
