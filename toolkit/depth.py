"""How deep in a model every weight lies: what freezing and layer-wise learning rates go by."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Depths:
    """Depth of every parameter, by name: 0 embeddings, 1 to ``layers`` the layers, then the rest.

    The rest, at depth ``layers + 1``, is what comes after the last layer: a last norm, a pooler,
    the head of the task. Where encoder and decoder have stacks of their own, both are counted from
    1, and the shorter one's last layer lies as deep as that number says.
    """

    layers: int
    of: dict[str, int]


def parameter_depths(model: nn.Module) -> Depths | None:
    """Depths of the parameters of any Transformer, ours or HuggingFace's, adapted or not.

    A layer is an entry of the outermost `nn.ModuleList` on the way to a weight. Embeddings are what
    comes before the first layer, and every `nn.Embedding` (a decoder's positions). Weights that are
    used twice, as embedding and as output, count where they are named first.

    Returns:
        None where the model has no list of layers.
    """
    stacks = {name for name, part in model.named_modules() if isinstance(part, nn.ModuleList)}
    embeddings = {name for name, part in model.named_modules() if isinstance(part, nn.Embedding)}
    places = {name: _layer_of(name, stacks) for name, _ in model.named_parameters()}
    found = [place for place in places.values() if place is not None]
    if not found:
        return None
    top, depths, before_layers = max(found) + 1, {}, True
    for name, place in places.items():
        before_layers = before_layers and place is None
        if place is not None:
            depths[name] = place
        elif before_layers or name.rpartition(".")[0] in embeddings:
            depths[name] = 0
        else:
            depths[name] = top
    return Depths(top - 1, depths)


def _layer_of(name: str, stacks: set[str]) -> int | None:
    """``bert.layers.3.norm.weight -> 4``; None outside a list of layers."""
    for number in re.finditer(r"\.(\d+)\.", name):
        if name[: number.start()] in stacks:
            return int(number[1]) + 1
    return None
