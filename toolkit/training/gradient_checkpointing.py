"""`--train.gradient_checkpointing`: layers are computed again in the backward pass, to save memory.

What a layer computes inside is thrown away after the forward pass; its input alone is kept (Chen et
al. 2016, arXiv:1604.06174). Dropout draws the same masks again.
"""

from __future__ import annotations

import logging
from typing import Any

from torch import nn

from toolkit.errors import UserError


def checkpoint_layers(model: nn.Module) -> None:
    """Let every layer of a Transformer be computed again; an adapter's base model counts.

    The model's config stays as it was, and evaluation and generation are as before: only training
    passes are changed.

    Raises:
        UserError: the model has no layers that can be computed by themselves.
    """
    base: Any = model
    base = base.get_base_model() if hasattr(base, "get_base_model") else base
    refused = (
        f"--train.gradient_checkpointing: {type(base).__name__} cannot compute its layers again in "
        "the backward pass. Leave it out; a smaller --train.batch_size with as many more "
        "--train.accumulation_steps saves memory too."
    )
    if not getattr(base, "supports_gradient_checkpointing", False):
        raise UserError(refused)
    _say_nothing_of_caches()
    try:
        # Not the reentrant kind: it gives layers over frozen embeddings no gradients.
        base.activation_checkpointing_enable({"use_reentrant": False})
    except ValueError as error:
        raise UserError(refused) from error


def _say_nothing_of_caches() -> None:
    """transformers warns of every model whose config has a cache, such as BERT's, unused here."""
    for name in ("transformers.utils.generic", "transformers.modeling_layers"):
        logging.getLogger(name).addFilter(_is_about_something_else)


def _is_about_something_else(record: logging.LogRecord) -> bool:
    return "incompatible with gradient checkpointing" not in record.getMessage()
