"""Train the head of a model alone."""

from __future__ import annotations

from torch import nn

from toolkit.errors import UserError


def freeze_encoder(model: nn.Module) -> None:
    """Exclude all from training but the head of the task.

    Raises:
        UserError: the model does not tell its encoder from its head.
    """
    body = getattr(model, getattr(model, "base_model_prefix", ""), model)
    if body is model:
        raise UserError(f"--method frozen: {type(model).__name__} has no encoder apart from a head")
    body.requires_grad_(False)
