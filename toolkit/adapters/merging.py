"""Add the updates of an adapter to the weights of its model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from toolkit.console import notify
from toolkit.errors import UserError

_UNCHANGED = 1e-6
"""Relative difference below which a merged weight is the old one: rounding of float32."""


def merge(model: Any, example: Mapping[str, Tensor] | None = None) -> nn.Module:
    """The plain model with the updates added to its weights.

    Sums of half-precision weights are taken in float32 and rounded once; modules trained whole take
    the precision of those they replace. An adapter that changes nothing gives a warning.

    Args:
        example: a batch of inputs. The largest difference it makes to the logits that the merged
            model is not the adapted one is said: rounding, which in half precision can be seen.

    Raises:
        UserError: an update is on a weight that is used in two places, such as the token embedding
            of a language model, which is its output layer too.
    """
    _refuse_tied(model)
    expected = None if example is None else _first_output(model, example)
    dtypes = {_plain_name(name): p.dtype for name, p in _base_parameters(model)}
    with torch.no_grad():
        changed = [_merge_layer(layer) for layer in _adapted_layers(model)]
    if not any(changed):
        notify(
            f"warning: the adapter changes none of the {len(changed)} layers it is on: was it "
            "trained, and loaded?"
        )
    merged: nn.Module = model.unload()
    for name, parameter in merged.named_parameters():
        parameter.data = parameter.data.to(dtypes.get(name, parameter.dtype))
    if expected is not None and example is not None:
        actual = _first_output(merged, example)
        difference = (actual.float() - expected.float()).abs().max().item()
        largest = expected.float().abs().max().item()
        kept = str(actual.dtype).removeprefix("torch.")
        notify(
            f"merged, weights in {kept}: outputs differ by {difference:.1e} at most, "
            f"of up to {largest:.1e}"
        )
    return merged


def _refuse_tied(model: Any) -> None:
    """An update is of one use of a weight; merged, it would be of all of them."""
    places: dict[int, list[str]] = {}
    for name, parameter in model.get_base_model().named_parameters(remove_duplicate=False):
        places.setdefault(id(parameter), []).append(_plain_name(name))
    for layer in _adapted_layers(model):
        names = sorted(set(places.get(id(layer.get_base_layer().weight), [])))
        if len(names) > 1:
            raise UserError(
                f"the adapter cannot be merged: it changes {names[0]}, which is also {names[1]}: "
                "the sum would change both. Keep the adapter apart, or untie the model "
                "(tie_word_embeddings=False) before training it."
            )


def _adapted_layers(model: nn.Module) -> Iterator[Any]:
    from peft.tuners.tuners_utils import BaseTunerLayer

    for name, layer in model.named_modules():
        if isinstance(layer, BaseTunerLayer) and ".original_module." not in name:
            yield layer


def _merge_layer(layer: Any) -> bool:
    """Merge one layer; True if that changed its weight, or it was merged before."""
    if layer.merged:
        return True
    weight = layer.get_base_layer().weight
    dtype, before = weight.dtype, weight.detach().clone()
    if dtype in (torch.bfloat16, torch.float16):
        layer.get_base_layer().float()
    layer.merge()
    layer.get_base_layer().to(dtype)
    after = layer.get_base_layer().weight
    return not torch.allclose(after, before, rtol=_UNCHANGED, atol=0)


def _base_parameters(model: Any) -> Iterator[tuple[str, nn.Parameter]]:
    for name, parameter in model.get_base_model().named_parameters():
        if ".modules_to_save." not in name and ".lora_" not in name:
            yield name, parameter


def _plain_name(name: str) -> str:
    return name.replace(".base_layer.", ".").replace(".original_module.", ".")


def _first_output(model: nn.Module, example: Mapping[str, Tensor]) -> Tensor:
    """Logits of a head, hidden states of a body; in evaluation mode."""
    training = model.training
    model.eval()
    with torch.no_grad():
        output = model(**example)
    model.train(training)
    first: Tensor = output.logits if hasattr(output, "logits") else output[0]
    return first
