"""Activation functions by the names that configs call them."""

from __future__ import annotations

from torch import nn
from transformers.activations import ACT2FN

_TANH = ("gelu_new", "gelu_pytorch_tanh")
"""0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): GPT-2's GELU (arXiv:1606.08415, §2)."""


def activation(name: str) -> nn.Module:
    """transformers' activation of that name, in one kernel where PyTorch has one.

    transformers writes "gelu_new" as eight operations, each of which reads and writes all values;
    PyTorch's is equal to it up to rounding.

    Raises:
        KeyError: there is none of that name.
    """
    module: nn.Module = nn.GELU(approximate="tanh") if name in _TANH else ACT2FN[name]
    return module
