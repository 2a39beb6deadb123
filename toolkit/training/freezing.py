"""Leave a part of a model as it is."""

from __future__ import annotations

from torch import nn

from toolkit.errors import UserError
from toolkit.training.depth import parameter_depths


def freeze_encoder(model: nn.Module) -> None:
    """Exclude all from training but the head of the task.

    Raises:
        UserError: the model does not tell its encoder from its head.
    """
    body = getattr(model, getattr(model, "base_model_prefix", ""), model)
    if body is model:
        raise UserError(f"--method frozen: {type(model).__name__} has no encoder apart from a head")
    body.requires_grad_(False)


def freeze_lowest(model: nn.Module, layers: int) -> None:
    """Exclude the embeddings and the lowest layers from training; 0 freezes the embeddings alone.

    In a model of encoder and decoder so many layers of either.

    Raises:
        UserError: the model has fewer layers, or no embeddings and stack of layers we know of.
    """
    depths = parameter_depths(model)
    if depths is None:
        raise UserError(
            f"--freeze_layers: {type(model).__name__} has no embeddings and layers to tell apart"
        )
    most = min(depths.stacks)
    if not 0 <= layers <= most:
        sizes = " and ".join(map(str, depths.stacks))
        raise UserError(
            f"--freeze_layers {layers}: the model has {sizes} layers, so expected a "
            f"number from 0 (the embeddings alone) to {most}"
        )
    for name, parameter in model.named_parameters():
        if depths.from_bottom[name] <= layers:
            parameter.requires_grad_(False)


def set_training_mode(model: nn.Module) -> None:
    """`model.train()`, but what is frozen stays as it is: batch norms measure in training mode."""
    model.train()
    for part in model.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            own = list(part.parameters())
            if own and not any(parameter.requires_grad for parameter in own):
                part.eval()
