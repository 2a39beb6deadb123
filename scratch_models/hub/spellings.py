"""What our parameters are called outside: by HuggingFace's class in memory, and on the Hub.

The Hub's names come from the name table of each class (`scratch_models.hub.mapping`). Where
transformers 5 has renamed a class since its checkpoints were written, transformers' own table leads
from the Hub's names to those in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from transformers import PreTrainedModel
from transformers.conversion_mapping import get_checkpoint_conversion_mapping
from transformers.core_model_loading import WeightRenaming

from scratch_models.hub.mapping import AlsoNamed, Rename, Row, table_of

_PEFT_PARTS = re.compile(r"\.(lora_\w+|modules_to_save)(\.|$)")
_PEFT_WRAPPERS = re.compile(r"\.(base_layer|original_module)(?=\.)")


@dataclass(frozen=True)
class Place:
    """Where a parameter of ours lies on HuggingFace's side.

    Args:
        name: path of the parameter there.
        part: which of several equal parts of that parameter it is, counted from 0.
        parts: how many there are.
        transposed: it stands there as [inputs, outputs] (Conv1D).
    """

    name: str
    part: int = 0
    parts: int = 1
    transposed: bool = False


def own_names(model: PreTrainedModel) -> list[str]:
    """Names of parameters and buffers of the plain model, also while peft has layers wrapped."""
    names = (name for name in model.state_dict() if not _PEFT_PARTS.search(name))
    return [_PEFT_WRAPPERS.sub("", name) for name in names]


def places(model: PreTrainedModel) -> dict[str, Place]:
    """Every parameter of ours and its place in HuggingFace's class, as that has it in memory."""
    scopes = _scopes(model)
    return {name: _in_memory(next(_hub_places(name, scopes)), scopes) for name in own_names(model)}


def spellings(model: PreTrainedModel) -> dict[str, tuple[str, ...]]:
    """Every name outside, in memory or on the Hub, and our parameters in the order of its parts."""
    scopes = _scopes(model)
    found: dict[str, dict[int, str]] = {}
    for ours in own_names(model):
        for place in _hub_places(ours, scopes):
            for spelled in (place, _in_memory(place, scopes)):
                found.setdefault(spelled.name, {})[spelled.part] = ours
    return {name: tuple(parts[i] for i in sorted(parts)) for name, parts in found.items()}


_Scope = tuple[str, type[PreTrainedModel]]


def _scopes(model: PreTrainedModel) -> list[_Scope]:
    """Prefix and class of every model in the model: bodies before the heads built on them."""
    modules = reversed(list(model.named_modules()))
    scopes = ((name, type(part)) for name, part in modules if isinstance(part, PreTrainedModel))
    return [(f"{name}." if name else "", part_class) for name, part_class in scopes]


def _hub_places(name: str, scopes: Sequence[_Scope]) -> Iterator[Place]:
    """Under which names the Hub has a parameter; the one that is written first."""
    for prefix, model_class in scopes:
        if name.startswith(prefix):
            rows = sorted(table_of(model_class), key=lambda row: isinstance(row, AlsoNamed))
            found = list(_apply(rows, name.removeprefix(prefix)))
            if found:
                yield from (replace(place, name=prefix + place.name) for place in found)
                return
    yield Place(name)


def _apply(rows: Sequence[Row], name: str) -> Iterator[Place]:
    for row in rows:
        ours = (row.ours,) if isinstance(row, Rename) else row.ours
        for part, path in enumerate(ours):
            pattern = re.escape(path).replace(r"\*", r"(\d+)")
            if match := re.match(rf"{pattern}(?=\.|$)", name):
                numbers = iter(match.groups())
                hub = re.sub(r"\*", lambda _, n=numbers: next(n), row.hub)  # type: ignore[misc]
                yield Place(hub + name[match.end() :], part, len(ours), not isinstance(row, Rename))


def _in_memory(place: Place, scopes: Sequence[_Scope]) -> Place:
    """The same place under the name that transformers gives it when it loads a checkpoint."""
    for prefix, model_class in scopes:
        renamings = _huggingface_renamings(getattr(model_class, "huggingface_class", None))
        if renamings and place.name.startswith(prefix):
            name = place.name.removeprefix(prefix)
            for renaming in renamings:
                name, _ = renaming.rename_source_key(name)
            return replace(place, name=prefix + name)
    return place


@cache
def _huggingface_renamings(class_name: str | None) -> tuple[WeightRenaming, ...]:
    table = get_checkpoint_conversion_mapping(class_name) or ()
    return tuple(row for row in table if isinstance(row, WeightRenaming))
