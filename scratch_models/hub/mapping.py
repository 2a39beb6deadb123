"""The vocabulary in which a model states its name table: *Hub name <-> our name*.

A table is a list of rows such as
`rename("encoder.layer.*.output.dense", "layers.*.feed_forward.down")`, read by transformers' own
loader in both directions. Every row names a whole path from the root of the model, so a key is
matched by one row only: rows cannot act on each other's results, and their order means nothing.
(transformers looks for patterns anywhere in a name and applies one after the other; in reverse, a
short name then also matches inside a longer one and corrupts the saved file.)

The words:

- `rename`: another name, the same tensor;
- `transpose`: a weight stored as [inputs, outputs] (GPT-2's Conv1D) that is an `nn.Linear` here;
- `transpose_and_split`: the same, with several of our layers side by side in one stored weight;
- `also_named`: a second spelling found in checkpoints, written back only where it was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
    Chunk,
    Transpose,
    WeightConverter,
    WeightRenaming,
    WeightTransform,
    dot_natural_key,
    rename_source_key,
)


@dataclass(frozen=True)
class Rename:
    """One row: a module or parameter by its path on the Hub and by its path in our model.

    `*` stands for a number (of a stage, a layer); both paths have as many, in the same order.
    """

    hub: str
    ours: str

    def __post_init__(self) -> None:
        if self.hub.count("*") != self.ours.count("*"):
            raise ValueError(f"{self.hub} and {self.ours} differ in the number of their `*`.")


@dataclass(frozen=True)
class AlsoNamed(Rename):
    """A second spelling of a path: understood when loading, written only where it was read."""


@dataclass(frozen=True)
class TransposedLinears:
    """One row: a Conv1D on the Hub, weight [inputs, outputs], and the `nn.Linear`s it holds.

    Args:
        hub: path of the Conv1D, with `*` for the number of the layer.
        ours: paths of our layers, in the order in which their outputs stand in the Conv1D.
    """

    hub: str
    ours: tuple[str, ...]


Row = Rename | TransposedLinears


def rename(hub: str, ours: str) -> Rename:
    """A row of a name table: the same tensor under another name; see `Rename`."""
    return Rename(hub, ours)


def also_named(hub: str, ours: str) -> AlsoNamed:
    """A row of a name table: another spelling on the Hub; see `AlsoNamed`."""
    return AlsoNamed(hub, ours)


def transpose(hub: str, ours: str) -> TransposedLinears:
    """A row of a name table: a Conv1D on the Hub that is one `nn.Linear` here."""
    return TransposedLinears(hub, (ours,))


def transpose_and_split(hub: str, ours: Sequence[str]) -> TransposedLinears:
    """A row of a name table: a Conv1D on the Hub that is several equal `nn.Linear`s here."""
    return TransposedLinears(hub, tuple(ours))


class _PathRenaming(WeightRenaming):
    """A renaming that carries over every number of a path; transformers' own carries over one."""

    __slots__ = ()

    def rename_source_key(self, source_key: str) -> tuple[str, str | None]:
        """The new name and the pattern that matched, or the old name and None."""
        renamed, pattern = super().rename_source_key(source_key)
        if pattern is None:
            return source_key, None
        # transformers leaves the groups of a target behind the first as they are.
        numbers = iter(self._scoped_match(source_key)[2].groups()[2:])
        return re.sub(r"\(\\d\+\)", lambda _: next(numbers), renamed), pattern


class SeparateChunk(Chunk):
    """Pieces with memory of their own.

    transformers' `Chunk` gives views of one tensor, which safetensors takes for one tied weight:
    accelerate's checkpoints would leave all pieces but the first out.
    """

    def convert(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """As `Chunk`, copied."""
        return {name: piece.clone() for name, piece in super().convert(*args, **kwargs).items()}


class OldName(_PathRenaming):
    """A name of old checkpoints: always understood, written only into a checkpoint that had it."""

    __slots__ = ("written",)

    def __init__(self, source_patterns: str | list[str], target_patterns: str | list[str]) -> None:
        super().__init__(source_patterns, target_patterns)
        self.written = False

    def reverse_transform(self) -> WeightTransform:
        """The way back to the old name, or itself, which matches nothing when saving."""
        return super().reverse_transform() if self.written else self


_tables: dict[str, Sequence[Row]] = {}
"""The table of every class, as it was registered."""


def register_names(class_name: str, table: Sequence[Row], base_model_prefix: str = "") -> None:
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
    # Reversed when saving: second spellings stand last, so that one that is written goes first.
    ordered = sorted(table, key=lambda row: isinstance(row, AlsoNamed))
    rows = [transform for row in ordered for transform in _transforms(row, base_model_prefix)]
    register_checkpoint_conversion_mapping(class_name, legacy + rows, overwrite=True)
    _tables[class_name] = table


def _transforms(row: Row, base_model_prefix: str) -> Iterator[WeightTransform]:
    """What transformers' loader calls a row."""
    if isinstance(row, Rename):
        transform = OldName if isinstance(row, AlsoNamed) else _PathRenaming
        paths = (row.hub, row.ours)
        yield transform(*(_path_pattern(path, base_model_prefix) for path in paths))
        return
    # A converter cannot carry the number of the layer over: a renaming puts the hub's own name
    # behind our path to the layer first, and the converter sees what stands behind the number.
    _, hub_name = _split_at_number(row.hub)
    layers, names = zip(*(_split_at_number(path) for path in row.ours), strict=True)
    if len(set(layers)) > 1:
        raise ValueError(f"{row.hub} is split over several layers: {', '.join(row.ours)}.")
    converted = (".weight", ".bias") if len(names) > 1 else (".weight",)
    for kind in (".weight", ".bias"):
        within = f"{layers[0]}.{hub_name}" if kind in converted else row.ours[0]
        paths = (row.hub + kind, within + kind)
        yield WeightRenaming(*(_path_pattern(path, base_model_prefix) for path in paths))
    for kind in converted:
        turn = [Transpose(0, 1)] if kind == ".weight" else []
        cut = [SeparateChunk(dim=0)] if len(names) > 1 else []
        targets = [re.escape(name + kind) for name in names]
        yield WeightConverter(re.escape(hub_name + kind), targets, operations=[*turn, *cut])


def _split_at_number(path: str) -> tuple[str, str]:
    """`h.*.attn.c_attn` -> (`h.*`, `attn.c_attn`)."""
    layer, _, name = path.partition(".*.")
    return f"{layer}.*", name


def _path_pattern(path: str, base_model_prefix: str) -> str:
    """A regular expression for a path from the root; the loader closes it at the end of a name."""
    root = rf"(?:^|(?<=^{re.escape(base_model_prefix)}\.))" if base_model_prefix else "^"
    return root + re.escape(path).replace(r"\*", r"(\d+)")


def table_of(model_class: type[PreTrainedModel]) -> Sequence[Row]:
    """The table that was registered for a class, without those of the bodies inside it."""
    return _tables.get(model_class.__name__, ())


def adapter_key_mapping(model: PreTrainedModel) -> dict[str, str]:
    """Regular expressions that turn adapter weights (peft) of HuggingFace's class into ours.

    peft applies them to names such as `bert.encoder.layer.0.attention.self.query.lora_A.weight`.
    Adapters trained on our class match none and stay as they are. An update of a layer that is
    several of ours is more than a name: `scratch_models.hub.adapters` converts those.
    """
    mapping = {}
    for module in model.modules():
        if not isinstance(module, PreTrainedModel):
            continue
        for row in table_of(type(module)):
            path, *others = (row.ours,) if isinstance(row, Rename) else row.ours
            if others:
                continue
            pattern = re.escape(row.hub).replace(r"\*", r"(\d+)")
            first, *rest = path.split("*")
            ours = first + "".join(rf"\{number}{part}" for number, part in enumerate(rest, start=2))
            mapping[rf"(^|\.){pattern}(?=\.)"] = r"\1" + ours
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
