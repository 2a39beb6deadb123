"""How alike the heads of a layer are: where they look, what they say, what it does without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from statistics import fmean

import torch
from torch import Tensor, nn

from scratch_models.layers.attention import MultiHeadAttention


def js_divergence(first: Tensor, second: Tensor) -> Tensor:
    """Jensen-Shannon divergence in bits, 0 (equal) to 1 (apart): twice […, keys] -> […]."""
    middle = (first + second) / 2
    entropies = [torch.special.entr(one).sum(-1) for one in (middle, first, second)]
    nats = entropies[0] - (entropies[1] + entropies[2]) / 2
    return nats.clamp(min=0) / torch.log(torch.tensor(2.0))


def linear_cka(first: Tensor, second: Tensor) -> float:
    """Linear CKA of two sets of features [examples, dims], 0 to 1 (Kornblith et al. 2019, §3).

    1 where one is the other, turned or scaled.
    """
    a, b = (one.double() - one.double().mean(0) for one in (first, second))
    cross = (a.T @ b).square().sum()
    own = (a.T @ a).norm() * (b.T @ b).norm()
    return float(cross / own)


def subspace_overlap(first: Tensor, second: Tensor) -> float:
    """Mean squared cosine of the principal angles between two column spaces [rows, dims].

    1 where they are the same; dims / rows is expected of random ones.
    """
    a, b = (torch.linalg.qr(one.double())[0] for one in (first, second))
    return float((a.T @ b).square().sum() / first.shape[1])


def attentions(model: nn.Module) -> list[MultiHeadAttention]:
    """The attention of every layer, in order."""
    return [module for module in model.modules() if isinstance(module, MultiHeadAttention)]


def head_divergence(weights: Tensor) -> float:
    """Mean over pairs of heads, places and texts; weights [texts, heads, places, keys]."""
    pairs = combinations(range(weights.shape[1]), 2)
    return fmean(float(js_divergence(weights[:, a], weights[:, b]).mean()) for a, b in pairs)


def input_divergence(weights: Tensor) -> float:
    """Mean divergence of a head from itself on the next text, [texts, heads, places, keys]."""
    return float(js_divergence(weights, weights.roll(1, 0)).mean())


def head_cka(outputs: Tensor) -> float:
    """Mean CKA over pairs of heads; outputs [examples, heads, head_dim]."""
    pairs = combinations(range(outputs.shape[1]), 2)
    return fmean(linear_cka(outputs[:, a], outputs[:, b]) for a, b in pairs)


def head_overlap(attention: MultiHeadAttention) -> float:
    """Mean overlap, over pairs of heads, of the subspaces that they write to."""
    written = attention.output.weight.detach().split(attention.head_dim, dim=1)
    return fmean(subspace_overlap(a, b) for a, b in combinations(written, 2))


@contextmanager
def recorded_outputs(layers: Sequence[MultiHeadAttention]) -> Iterator[list[Tensor]]:
    """What the heads of every layer give to its output matrix while the block runs.

    Each [batch, length, heads, head_dim], in the order of the layers of one forward pass.
    """
    outputs: list[Tensor] = []

    def keep(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        outputs.append(inputs[0].detach())

    hooks = [one.output.register_forward_pre_hook(keep) for one in layers]
    try:
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()
        outputs[:] = [
            one.unflatten(-1, (layer.num_heads, layer.head_dim))
            for one, layer in zip(outputs, layers, strict=True)
        ]


@contextmanager
def without_heads(attention: MultiHeadAttention, heads: Sequence[int]) -> Iterator[None]:
    """Prune heads while the block runs: their columns of the output matrix are 0."""
    weight = attention.output.weight
    kept = weight.detach().clone()
    try:
        with torch.no_grad():
            for head in heads:
                weight[:, head * attention.head_dim : (head + 1) * attention.head_dim] = 0
        yield
    finally:
        with torch.no_grad():
            weight.copy_(kept)
