"""Put LoRA or DoRA on a model: only the updates and the new modules are trained."""

from __future__ import annotations

import warnings
from typing import Any

from torch import nn

from toolkit.adapters.targets import (
    LoraSettings,
    choose_targets,
    layers_named,
    linear_layers,
    modules_to_train,
    task_type,
)
from toolkit.config import check_range
from toolkit.console import notify
from toolkit.errors import UserError, first_line


def add_lora(
    model: nn.Module, settings: LoraSettings, new_modules: list[str], *, dora: bool = False
) -> Any:
    """Wrap a model with LoRA (Hu et al. 2021, arXiv:2106.09685) and say on which layers.

    Any model will do: ours, HuggingFace's, or a plain module. With gradient checkpointing on, the
    inputs of its layers get gradients, as frozen embeddings would give them none.

    Args:
        new_modules: modules without pretrained weights (classifier, pooler). They are trained whole
            and saved with the adapter; left out, they would be random again after loading. The head
            of a classifier is trained whole in any case.
        dora: learn the length of every row of a weight apart from its direction as well (DoRA, Liu
            et al. 2024, arXiv:2402.09353).

    Raises:
        UserError: no layer has one of the target names (lists the linear layers there are), a
            target is no linear layer, or a rank or dropout that cannot be.
    """
    from peft import LoraConfig, get_peft_model

    if settings.rank < 1:
        raise UserError(f"--lora.rank {settings.rank}: expected at least 1")
    check_range("lora.dropout", settings.dropout, 0, 1)
    targets = choose_targets(model, settings.targets)
    layers = layers_named(targets, linear_layers(model))
    config = LoraConfig(
        task_type=task_type(model),
        revision=getattr(getattr(model, "config", None), "_commit_hash", None),
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        use_dora=dora,
        target_modules=targets,
        modules_to_save=modules_to_train(model, new_modules),
    )
    try:
        with warnings.catch_warnings():
            # GPT-2's Conv1D: peft sets what it warns of by itself.
            warnings.filterwarnings("ignore", message="fan_in_fan_out")
            warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing")
            adapted = get_peft_model(model, config)
    except ValueError as error:
        raise UserError(f"--lora.targets {settings.targets}: {first_line(error)}") from error
    trained, _ = adapted.get_nb_trainable_parameters()
    notify(
        f"{'DoRA' if dora else 'LoRA'} on {count_adapted(adapted)} of {len(layers)} "
        f"layers {', '.join(targets)}: {trained:,} parameters are trained"
    )
    return adapted


def count_adapted(model: nn.Module) -> int:
    """Number of layers with an update, counted in the model itself."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    # A module that is trained whole is kept twice.
    return sum(
        isinstance(part, BaseTunerLayer) and ".original_module." not in name
        for name, part in model.named_modules()
    )
