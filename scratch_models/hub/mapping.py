"""The vocabulary in which a model states its name table: *Hub name <-> our name*.

A table is a list of rows such as
`rename("encoder.layer.*.output.dense", "layers.*.feed_forward.down")`, read by transformers' own
loader in both directions. Every row names a whole path from the root of the model, so a key is
matched by one row only: rows cannot act on each other's results, and their order means nothing.
(transformers looks for patterns anywhere in a name and applies one after the other; in reverse, a
short name then also matches inside a longer one and corrupts the saved file.)
"""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel
from transformers.conversion_mapping import (
    get_model_conversion_mapping,
    register_checkpoint_conversion_mapping,
)
from transformers.core_model_loading import (
    WeightConverter,
    WeightRenaming,
    WeightTransform,
    dot_natural_key,
    rename_source_key,
)


@dataclass(frozen=True)
class Rename:
    """One row: a module or parameter by its path on the Hub and by its path in our model.

    `*` stands for the number of a layer; at most one a path.
    """

    hub: str
    ours: str


def rename(hub: str, ours: str) -> Rename:
    """A row of a name table; see `Rename`."""
    return Rename(hub, ours)


class OldName(WeightRenaming):
    """A name of old checkpoints: always understood, written only into a checkpoint that had it."""

    __slots__ = ("written",)

    def __init__(self, source_patterns: str | list[str], target_patterns: str | list[str]) -> None:
        super().__init__(source_patterns, target_patterns)
        self.written = False

    def reverse_transform(self) -> WeightTransform:
        """The way back to the old name, or itself, which matches nothing when saving."""
        return super().reverse_transform() if self.written else self


_tables: dict[str, list[Rename]] = {}
"""The table of every class, as it was registered."""


def register_names(class_name: str, table: list[Rename], base_model_prefix: str = "") -> None:
    """Teach transformers' loader the names of a model class.

    Args:
        class_name: of our class; tables of bodies also apply inside the heads built on them.
        table: one row for every path that differs.
        base_model_prefix: for a body: the prefix its weights carry in checkpoints of head models.
    """
    # transformers knows these old norm names too, but looks after our table has renamed the norms.
    legacy = [
        OldName(r"LayerNorm\.gamma", r"LayerNorm\.weight"),
        OldName(r"LayerNorm\.beta", r"LayerNorm\.bias"),
    ]
    rows = [
        WeightRenaming(
            _path_pattern(row.hub, base_model_prefix), _path_pattern(row.ours, base_model_prefix)
        )
        for row in table
    ]
    register_checkpoint_conversion_mapping(class_name, legacy + rows, overwrite=True)
    _tables[class_name] = table


def _path_pattern(path: str, base_model_prefix: str) -> str:
    """A regular expression for a path from the root; the loader closes it at the end of a name."""
    root = rf"(?:^|(?<=^{re.escape(base_model_prefix)}\.))" if base_model_prefix else "^"
    return root + re.escape(path).replace(r"\*", r"(\d+)")


def adapter_key_mapping(model: PreTrainedModel) -> dict[str, str]:
    """Regular expressions that turn adapter weights (peft) of HuggingFace's class into ours.

    peft applies them to names such as `bert.encoder.layer.0.attention.self.query.lora_A.weight`.
    Adapters trained on our class match none and stay as they are.
    """
    mapping = {}
    for module in model.modules():
        for row in _tables.get(type(module).__name__, ()):
            pattern = re.escape(row.hub).replace(r"\*", r"(\d+)")
            mapping[rf"(^|\.){pattern}(?=\.)"] = r"\1" + row.ours.replace("*", r"\2")
    return mapping


def saving_table(model: PreTrainedModel) -> list[WeightTransform]:
    """The renamings to undo when saving: the whole table, whatever loading made use of.

    transformers by itself undoes those only that loading used, and would save a head put on a
    body's checkpoint half in our names. Old names are written where the checkpoint had them, as
    HuggingFace's own classes do.
    """
    used = {
        tuple(transform.source_patterns)
        for transform in getattr(model, "_weight_conversions", None) or ()
        if isinstance(transform, OldName) and transform.was_used()
    }
    table = get_model_conversion_mapping(model, add_legacy=False)
    for transform in table:
        if isinstance(transform, OldName):
            transform.written = tuple(transform.source_patterns) in used
    return table


def to_own_names(model: PreTrainedModel, state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """A state dict in Hub names, in the names and layout of `model`.

    What already bears our names stays, and where only the name changes the tensor is passed on, not
    copied. Unknown names come back as they are for the caller to report. Gradients can be passed as
    well as weights.
    """
    own = model.state_dict(keep_vars=True)
    transforms = get_model_conversion_mapping(model)
    renamings = [t for t in transforms if isinstance(t, WeightRenaming)]
    converters = [t for t in transforms if isinstance(t, WeightConverter)]
    converter_of = {pattern: c for c in converters for pattern in c.source_patterns}
    result: dict[str, Tensor] = {}
    pending: dict[str, Any] = {}
    for key, tensor in sorted(state_dict.items(), key=lambda item: dot_natural_key(item[0])):
        if key in own:
            result[key] = tensor
            continue
        new_key, pattern = rename_source_key(
            key, renamings, converters, model.base_model_prefix, own
        )
        if pattern is None:
            result[new_key] = tensor
        else:
            converter = pending.setdefault(new_key, deepcopy(converter_of[pattern]))
            converter.add_tensor(new_key, key, pattern, tensor)
    for new_key, converter in pending.items():
        converted = converter.convert(new_key, model=model, config=model.config)
        result.update({k: v[0] if isinstance(v, list) else v for k, v in converted.items()})
    return result
