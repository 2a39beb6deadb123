"""Which of our classes stands for which of HuggingFace's, and the Auto classes on request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from transformers import AutoConfig

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


def enable() -> None:
    """Let HuggingFace's Auto classes build our models, in this process, until `disable`.

    Opt-in, as it changes what `AutoModel.from_pretrained` returns to everybody in the process.
    """
    for head, model_class in _classes():
        config_class = model_class.config_class
        if config_class.__module__.startswith("scratch_models."):
            AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
        _auto_class(head).register(config_class, model_class, exist_ok=True)


def disable() -> None:
    """Give the Auto classes back to HuggingFace's own models."""
    for head, model_class in _classes():
        _auto_class(head)._model_mapping._extra_content.pop(model_class.config_class, None)


def _classes() -> Iterator[tuple[str, Any]]:
    for architecture in architectures().values():
        for head in architecture.classes:
            yield head, architecture.load(head)


def _auto_class(head: str) -> Any:
    return getattr(transformers, HEADS[head])
