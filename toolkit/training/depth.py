"""How deep in a model every weight lies: what freezing and layer-wise learning rates go by."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Depths:
    """Where every parameter lies, by name; encoder and decoder are counted each by itself.

    Args:
        stacks: number of layers of every stack.
        from_bottom: 0 embeddings, 1 the lowest layer and so on; what comes after the last layer (a
            last norm, a pooler, the head of the task) lies one above the longest stack.
        from_top: 0 what comes after the layers, 1 the last layer of a stack and so on; embeddings
            lie one below the longest stack.
    """

    stacks: list[int]
    from_bottom: dict[str, int]
    from_top: dict[str, int]


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
    sizes: dict[str, int] = {}
    for place in places.values():
        if place is not None:
            sizes[place[0]] = max(sizes.get(place[0], 0), place[1])
    if not sizes:
        return None
    beyond, before_layers = max(sizes.values()) + 1, True
    from_bottom, from_top = {}, {}
    for name, place in places.items():
        before_layers = before_layers and place is None
        if place is not None:
            stack, number = place
            from_bottom[name], from_top[name] = number, sizes[stack] + 1 - number
        elif before_layers or name.rpartition(".")[0] in embeddings:
            from_bottom[name], from_top[name] = 0, beyond
        else:
            from_bottom[name], from_top[name] = beyond, 0
    return Depths(list(sizes.values()), from_bottom, from_top)


def _layer_of(name: str, stacks: set[str]) -> tuple[str, int] | None:
    """``bert.layers.3.norm.weight -> bert.layers, 4``; None outside a list of layers."""
    for number in re.finditer(r"\.(\d+)\.", name):
        if name[: number.start()] in stacks:
            return name[: number.start()], int(number[1]) + 1
    return None
