"""LoRA and DoRA adapters (peft's format) between HuggingFace's class and ours.

Where a layer has another name only, so have its updates. Where one layer of HuggingFace's is
several of ours (GPT-2's `c_attn` is our query, key and value), with update B A of its weight:

- to ours: every part gets A and its own rows of B (and of DoRA's magnitude);
- to HuggingFace's: the A of the parts stand on each other, their B on the diagonal of one B, zero
  where a part has no update. The rank is the sum of theirs and alpha grows with it, so that the
  scaling alpha / r (alpha / sqrt(r) with `use_rslora`) stays. DoRA's magnitude of a part without
  update is the length of the rows of its weight.

Both are exact but for rounding. What has no exact counterpart is refused.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import PreTrainedModel

from scratch_models.hub.module_names import covering_modules, modules_of, shortest_names
from scratch_models.hub.spellings import Place, own_names, places, spellings

_UPDATE = re.compile(
    r"(?P<layer>.+)\.(?P<kind>lora_A\.weight|lora_B\.(weight|bias)|lora_embedding_[AB]"
    r"|lora_magnitude_vector(\.weight)?|base_layer\.bias)"
)
_MORE_THAN_LAYERS = ("target_parameters", "layer_replication", "trainable_token_indices")
_PLAIN_STARTS = (True, False, "gaussian", "orthogonal", "eva")


@dataclass
class Adapter:
    """What an adapter folder holds.

    Args:
        settings: of `adapter_config.json`.
        weights: by name from the root of the model, without peft's `base_model.model.`.
    """

    settings: dict[str, Any]
    weights: dict[str, Tensor]


@dataclass(frozen=True)
class _Size:
    rank: int
    alpha: float

    def scaling(self, rslora: bool) -> float:
        return self.alpha / (math.sqrt(self.rank) if rslora else self.rank)


def has_own_names(model: PreTrainedModel, adapter: Adapter) -> bool:
    """True if all weights of an adapter bear the names of our class."""
    names = set(own_names(model))
    return all(_parameter(key) in names for key in adapter.weights)


def to_ours(model: PreTrainedModel, adapter: Adapter) -> Adapter:
    """An adapter of HuggingFace's class for ours; old names of the Hub are understood too.

    Args:
        model: ours, the plain one.

    Raises:
        ValueError: weights of a layer that the model has not, or settings that change more than
            the weights of layers.
    """
    _check_settings(adapter.settings)
    known, where = spellings(model), places(model)
    unknown = sorted({_layer(key) for key in adapter.weights if _parameter(key) not in known})
    if unknown:
        raise ValueError(
            f"{type(model).__name__} has no counterpart of {len(unknown)} layers of the adapter: "
            f"{', '.join(unknown[:4])}{', …' if len(unknown) > 4 else ''}."
        )
    weights, sizes = {}, {}
    theirs = _sizes(adapter)
    for key, tensor in adapter.weights.items():
        parts = known[_parameter(key)]
        found = _UPDATE.fullmatch(key)
        if found is None:
            _check_whole(key, where[parts[0]])
            weights[parts[0]] = tensor
            continue
        pieces = _split(found["kind"], tensor, len(parts))
        for part, piece in zip(parts, pieces, strict=True):
            layer = _module(part)
            weights[f"{layer}.{found['kind']}"] = piece
            if found["layer"] in theirs:
                sizes[layer] = theirs[found["layer"]]
    settings = {
        **adapter.settings,
        **_describe(sizes, modules_of(where)),
        "target_modules": shortest_names(sizes, modules_of(where)),
        "fan_in_fan_out": False,
        "auto_mapping": None,
        "modules_to_save": covering_modules(
            adapter.settings.get("modules_to_save"),
            {name: parts[0] for name, parts in known.items()},
        ),
    }
    return Adapter(settings, weights)


def to_huggingface(model: PreTrainedModel, adapter: Adapter) -> Adapter:
    """An adapter of our class for HuggingFace's.

    Where only names differ, the settings name the layers of both classes: peft passes over names
    that a model has not, and so puts the result on either.

    Args:
        model: ours, plain or with the adapter on it.

    Raises:
        ValueError: there is no adapter of HuggingFace's class that does the same.
    """
    _check_settings(adapter.settings)
    where = places(model)
    missing = sorted({_layer(key) for key in adapter.weights if _parameter(key) not in where})
    if missing:
        raise ValueError(f"{type(model).__name__} has no layer {', '.join(missing)}.")
    weights, split = {}, {}
    for key, tensor in adapter.weights.items():
        place, found = where[_parameter(key)], _UPDATE.fullmatch(key)
        if found is None:
            _check_whole(key, place)
            weights[place.name] = tensor
        elif place.parts == 1:
            weights[f"{_module(place.name)}.{found['kind']}"] = tensor
        else:
            split[_module(place.name)] = place.parts
    ours = _sizes(adapter)
    sizes = {_module(where[f"{layer}.weight"].name): size for layer, size in ours.items()}
    known = spellings(model)
    for layer in split:
        parts = [_module(name) for name in known[f"{layer}.weight"]]
        fused, sizes[layer] = _fuse(model, parts, adapter, ours)
        weights |= {f"{layer}.{kind}": tensor for kind, tensor in fused.items()}
    own_modules = modules_of(where)
    their_modules = modules_of(place.name for place in where.values())
    settings = {
        **adapter.settings,
        **_describe(sizes, their_modules),
        "target_modules": shortest_names(sizes, their_modules, (own_modules, ours)),
        "fan_in_fan_out": any(where[f"{layer}.weight"].transposed for layer in ours),
        "modules_to_save": covering_modules(
            adapter.settings.get("modules_to_save"),
            {name: place.name for name, place in where.items()},
        ),
    }
    if not split:
        both = shortest_names(ours, own_modules, (their_modules, sizes))
        settings["target_modules"] = sorted({*settings["target_modules"], *both})
        for pattern in ("rank_pattern", "alpha_pattern"):
            settings[pattern] |= _describe(ours, own_modules)[pattern]
    if settings.get("auto_mapping"):
        settings["auto_mapping"] = _auto_mapping(model)
    return Adapter(settings, weights)


def _layer(key: str) -> str:
    found = _UPDATE.fullmatch(key)
    return found["layer"] if found else _module(key)


def _parameter(key: str) -> str:
    """The parameter of the plain model that a weight of an adapter acts on or replaces."""
    found = _UPDATE.fullmatch(key)
    if found is None:
        return key
    return f"{found['layer']}.{'bias' if found['kind'] == 'base_layer.bias' else 'weight'}"


def _module(parameter: str) -> str:
    return parameter.rpartition(".")[0]


def _check_settings(settings: Mapping[str, Any]) -> None:
    if settings.get("peft_type", "LORA") != "LORA":
        raise ValueError(f"it is a {settings['peft_type']} adapter: only LoRA and DoRA convert.")
    for name in _MORE_THAN_LAYERS:
        if settings.get(name):
            raise ValueError(f"its {name} act on more than the weights of linear layers.")
    start = settings.get("init_lora_weights", True)
    if start not in _PLAIN_STARTS:
        raise ValueError(
            f"init_lora_weights {start!r} changed the weights under the adapter: save it with "
            "path_initial_model_for_weight_conversion (peft) first."
        )


def _check_whole(key: str, place: Place) -> None:
    if place.parts > 1 or (place.transposed and not key.endswith(".bias")):
        raise ValueError(
            f"{key} is a whole weight, and HuggingFace's class lays out that layer differently."
        )


def _sizes(adapter: Adapter) -> dict[str, _Size]:
    """Rank and alpha of every layer with an update; the ranks are those of its weights."""
    patterns = adapter.settings.get("alpha_pattern") or {}
    sizes = {}
    for key, tensor in adapter.weights.items():
        found = _UPDATE.fullmatch(key)
        if found is not None and found["kind"] in ("lora_A.weight", "lora_embedding_A"):
            matching = (p for p in patterns if re.match(rf"(.*\.)?({p})$", found["layer"]))
            pattern = next(matching, None)  # peft's rule: the first that matches the end
            alpha = patterns[pattern] if pattern else adapter.settings["lora_alpha"]
            sizes[found["layer"]] = _Size(tensor.shape[0], alpha)
    return sizes


def _describe(sizes: Mapping[str, _Size], modules: Collection[str]) -> dict[str, Any]:
    """Settings that give every layer its size: the most frequent one, and patterns for others."""
    counts = Counter(sizes.values())
    if not counts:
        return {}
    usual = max(counts, key=lambda size: counts[size])
    ranks: dict[str, int] = {}
    alphas: dict[str, float] = {}
    for other in counts:
        layers = [layer for layer, size in sizes.items() if size == other]
        names = shortest_names(layers, modules) if other != usual else []
        if other.rank != usual.rank:
            ranks |= dict.fromkeys(names, other.rank)
        if other.alpha != usual.alpha:
            alphas |= dict.fromkeys(names, other.alpha)
    return {
        "r": usual.rank,
        "lora_alpha": usual.alpha,
        "rank_pattern": ranks,
        "alpha_pattern": alphas,
        "exclude_modules": None,
        "layers_to_transform": None,
        "layers_pattern": None,
    }


def _split(kind: str, tensor: Tensor, parts: int) -> Sequence[Tensor]:
    if kind == "lora_A.weight":
        return [tensor.clone() for _ in range(parts)] if parts > 1 else [tensor]
    return [piece.contiguous() for piece in tensor.chunk(parts)] if parts > 1 else [tensor]


def _fuse(
    model: PreTrainedModel, parts: Sequence[str], adapter: Adapter, sizes: Mapping[str, _Size]
) -> tuple[dict[str, Tensor], _Size]:
    """The updates of layers side by side as those of one layer; parts without one stay as are."""
    weights, rslora = adapter.weights, bool(adapter.settings.get("use_rslora"))
    adapted = [part for part in parts if part in sizes]
    scaling = sizes[adapted[0]].scaling(rslora)
    rank = sum(sizes[part].rank for part in adapted)
    size = _Size(rank, scaling * (math.sqrt(rank) if rslora else rank))
    kinds = {found["kind"] for key in weights
             if (found := _UPDATE.fullmatch(key)) and found["layer"] in adapted}  # fmt: skip
    fused = {}
    for kind in sorted(kinds):
        if kind == "lora_A.weight":
            fused[kind] = torch.cat([weights[f"{part}.{kind}"] for part in adapted])
            continue
        pieces = []
        for part in parts:
            if part not in adapted:
                pieces.append(_unchanged(model, part, kind, weights[f"{adapted[0]}.{kind}"]))
            elif kind.startswith("lora_B"):
                ratio = sizes[part].scaling(rslora) / scaling
                piece = weights[f"{part}.{kind}"]
                pieces.append(piece if ratio == 1 else piece * ratio)
            else:
                pieces.append(weights[f"{part}.{kind}"])
        fused[kind] = torch.block_diag(*pieces) if kind == "lora_B.weight" else torch.cat(pieces)
    return fused, size


def _unchanged(model: PreTrainedModel, layer: str, kind: str, like: Tensor) -> Tensor:
    """What leaves a layer as it is, in the place of a weight of an update."""
    if kind == "lora_B.weight":
        return like.new_zeros(len(like), 0)
    if kind == "lora_B.bias":
        return torch.zeros_like(like)
    if kind.startswith("lora_magnitude_vector"):
        # In the precision of the updates, in which peft computes lengths.
        weight = model.get_parameter(f"{layer}.weight").detach().to(like)
        return torch.linalg.norm(weight, dim=1)
    raise ValueError(f"{layer} has no trained bias of its own beside those that have.")


def _auto_mapping(model: PreTrainedModel) -> dict[str, str]:
    """By which class AutoPeftModel builds the model where no task names one."""
    theirs = getattr(transformers, str(getattr(type(model), "huggingface_class", None)))
    return {"base_model_class": theirs.__name__, "parent_library": theirs.__module__}
