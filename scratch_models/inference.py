"""Faster linear layers on a CPU, for models that only predict.

oneDNN multiplies faster with weights in an order of its own. PyTorch has it reorder them at every
call; here that is done once, and the activation of the feed-forward part is computed while its
input is still in the cache. The operators are PyTorch's own, made for its compiler and without a
promise to stay (`torch.ops.mkldnn`): where they are missing, everything is computed as before.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from scratch_models.layers.feed_forward import FeedForward

logger = logging.getLogger(__name__)

Model = TypeVar("Model", bound=nn.Module)

_FUSED = {
    "GELUActivation": ("gelu", "none"),
    "GELU": ("gelu", "none"),
    "NewGELUActivation": ("gelu", "tanh"),
    "GELUTanh": ("gelu", "tanh"),
    "ReLU": ("relu", ""),
}
"""Classes of activations and how the operator calls them: name and algorithm."""


def optimize_for_inference(model: Model) -> Model:
    """Let a model predict faster on the CPU; the same outputs up to rounding (1e-6 relative).

    Works in place: every plain `torch.nn.Linear`, and every `FeedForward` of ours, is computed with
    reordered weights, in single precision, without gradients and outside autocast; otherwise as
    ever, so that the model can still be trained, saved and moved. Weights that change are reordered
    anew. The reordered weights take as much memory again as the plain ones.

    Args:
        model: any model, ours or not; it is put into evaluation mode.

    Returns:
        The model itself.
    """
    if not operators_work():
        logger.warning("this PyTorch has no reordered linear layers: the model stays as it is")
        return model.eval()
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = PrepackedLinear
        elif type(module) is FeedForward and _fused(module.activation) is not None:
            module.__class__ = FusedFeedForward
    return model.eval()


class PrepackedLinear(nn.Linear):
    """A linear layer that remembers its weights in oneDNN's order."""

    _packed: tuple[int, int, Tensor] | None = None

    def forward(self, input: Tensor) -> Tensor:
        """[..., in_features] -> [..., out_features]."""
        if not can_use(input, self.weight):
            return super().forward(input)
        return self.fused(input, "none", "")

    def fused(self, input: Tensor, activation: str, algorithm: str) -> Tensor:
        """The layer and what comes after it, in one."""
        return torch.ops.mkldnn._linear_pointwise(
            input, self._reordered(), self.bias, activation, [], algorithm
        )

    def _reordered(self) -> Tensor:
        weight = self.weight
        # The version counts changes in place; another tensor may lie at another address.
        state = (weight.data_ptr(), weight._version)
        if self._packed is None or self._packed[:2] != state:
            reordered = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)
            self._packed = (*state, reordered)
        return self._packed[2]

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles hold the plain weights; the others have no storage to copy."""
        return {name: value for name, value in self.__dict__.items() if name != "_packed"}


class FusedFeedForward(FeedForward):
    """A feed-forward part whose activation is computed with its first layer."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[…, hidden_size] -> […, hidden_size]."""
        name = _fused(self.activation)
        up: Any = self.up
        if name is None or not isinstance(up, PrepackedLinear):
            return super().forward(hidden_states)
        if not can_use(hidden_states, up.weight):
            return super().forward(hidden_states)
        return self.down(up.fused(hidden_states, *name))


def can_use(input: Tensor, weight: Tensor) -> bool:
    """Whether the operators compute what the plain layer would: no gradient, single precision."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    if torch.is_autocast_enabled("cpu") or input.numel() == 0:
        return False
    return all(t.device.type == "cpu" and t.dtype == torch.float32 for t in (input, weight))


@cache
def operators_work() -> bool:
    """Whether this PyTorch has the operators, and they give the right numbers."""
    linear, rows = nn.Linear(8, 8), torch.randn(3, 8, generator=torch.Generator().manual_seed(0))
    weight, bias = linear.weight.detach(), linear.bias.detach()
    expected = nn.functional.gelu(nn.functional.linear(rows, weight, bias))
    try:
        reordered = torch.ops.mkldnn._reorder_linear_weight(weight, None)
        found = torch.ops.mkldnn._linear_pointwise(rows, reordered, bias, "gelu", [], "none")
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False
    return bool(torch.allclose(found, expected, atol=1e-5))


def _fused(activation: Any) -> tuple[str, str] | None:
    if isinstance(activation, nn.GELU) and activation.approximate != "none":
        return ("gelu", activation.approximate)
    return _FUSED.get(type(activation).__name__)
