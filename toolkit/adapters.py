"""LoRA adapters (Hu et al. 2021, arXiv:2106.09685) through peft."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import nn

from toolkit.console import notify
from toolkit.errors import UserError


@dataclass
class LoraSettings:
    """Size and place of LoRA's low-rank updates."""

    rank: int = 8
    """Rank r of the update B A."""
    alpha: float = 16.0
    """The update is scaled by alpha / rank."""
    dropout: float = 0.05
    """Dropout before A."""
    targets: list[str] = field(default_factory=lambda: ["query", "value"])
    """Names of the linear layers that get an update."""


def add_lora(model: nn.Module, settings: LoraSettings, new_modules: list[str]) -> Any:
    """Wrap a sequence classifier with LoRA; only the updates and the new modules are trained.

    Args:
        new_modules: modules without pretrained weights (classifier, pooler). They are trained whole
            and saved with the adapter; left out, they would be random again after loading.

    Raises:
        UserError: no layer has one of the target names; lists the linear layers there are.
    """
    from peft import LoraConfig, TaskType, get_peft_model

    if settings.rank < 1:
        raise UserError(f"--lora.rank {settings.rank}: expected at least 1")
    linear = {
        name.rsplit(".", 1)[-1] for name, m in model.named_modules() if isinstance(m, nn.Linear)
    }
    unknown = [target for target in settings.targets if target not in linear]
    if len(unknown) == len(settings.targets):
        raise UserError(
            f"--lora.targets {settings.targets}: the model has no such linear layers; it has "
            f"{', '.join(sorted(linear))}."
        )
    if unknown:
        notify(f"warning: --lora.targets: no layer is called {', '.join(unknown)}; left out")
    config = LoraConfig(
        task_type=TaskType.SEQ_CLS,
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=[target for target in settings.targets if target in linear],
        modules_to_save=new_modules,
    )
    return get_peft_model(model, config)


def merge(model: Any) -> nn.Module:
    """The plain model with the updates added to its weights (float32, as it was trained)."""
    return model.merge_and_unload()
