"""Which of our classes stands for which of HuggingFace's, and the Auto classes on request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import CONFIG_MAPPING, AutoConfig

from scratch_models.hub.architecture import HEADS, architectures
from scratch_models.hub.base import ScratchPreTrainedModel

__all__ = ["HEADS", "disable", "enable", "scratch_class"]


def scratch_class(model_type: str, head: str = "model") -> type[ScratchPreTrainedModel]:
    """Our class for an architecture (`config.model_type`) and a head (a key of `HEADS`).

    Raises:
        ValueError: for an architecture or head we have not, naming those we have.
    """
    architecture = architectures().get(model_type)
    if architecture is None:
        known = ", ".join(sorted(architectures()))
        raise ValueError(f"no from-scratch model of type {model_type!r}: there are {known}.")
    if head not in architecture.classes:
        raise ValueError(
            f"no from-scratch {model_type!r} model for {head!r}: "
            f"it has {', '.join(architecture.classes)}."
        )
    found: type[ScratchPreTrainedModel] = architecture.load(head)
    return found


_found: list[tuple[dict[Any, Any], Any, Any]] = []
"""Where `enable` changed transformers' tables: table, key and what stood there (None: nothing)."""


def enable() -> None:
    """Let HuggingFace's Auto classes build our models, in this process, until `disable`.

    Opt-in, as it changes what `AutoModel.from_pretrained` returns to everybody in the process.
    """
    if _found:
        return
    for head, model_class in _classes():
        config_class = model_class.config_class
        if config_class.__module__.startswith("scratch_models."):
            _remember(CONFIG_MAPPING._extra_content, config_class.model_type)
            AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
        _remember(_auto_class(head)._model_mapping._extra_content, config_class)
        _auto_class(head).register(config_class, model_class, exist_ok=True)


def disable() -> None:
    """Leave the Auto classes as `enable` found them; what others registered there comes back."""
    while _found:
        table, key, before = _found.pop()
        if before is None:
            table.pop(key, None)
        else:
            table[key] = before


def _remember(table: dict[Any, Any], key: Any) -> None:
    _found.append((table, key, table.get(key)))


def _classes() -> Iterator[tuple[str, Any]]:
    for architecture in architectures().values():
        for head in architecture.classes:
            yield head, architecture.load(head)


def _auto_class(head: str) -> Any:
    return getattr(transformers, HEADS[head])
