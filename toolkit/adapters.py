"""LoRA adapters (Hu et al. 2021, arXiv:2106.09685) through peft."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers.core_model_loading import revert_weight_conversion

from scratch_models import ScratchPreTrainedModel
from scratch_models.hub.mapping import saving_table
from toolkit.config import check_range
from toolkit.console import notify
from toolkit.errors import UserError
from toolkit.run import Run


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
    check_range("lora.dropout", settings.dropout, 0, 1)
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


def save_adapter(run: Run[Any], model: Any, tokenizer: Any) -> None:
    """Save a LoRA model's updates, its new modules and the tokenizer in ``adapter/`` of the run.

    They get HuggingFace's names: peft puts them on HuggingFace's own class as on ours. Under
    our names it would leave out all updates on HuggingFace's, with a warning only.
    """
    if run.accelerator.is_main_process:
        folder = run.directory / "adapter"
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        if isinstance(base := model.get_base_model(), ScratchPreTrainedModel):
            _rename_for_huggingface(base, folder)


def _rename_for_huggingface(base: ScratchPreTrainedModel, folder: Path) -> None:
    file = folder / "adapter_model.safetensors"
    weights, updates = load_file(file), re.compile(r"base_model\.model\.(.+)\.(lora_[AB]\.weight)")
    found = {key: match for key in weights if (match := updates.fullmatch(key))}
    names = _huggingface_names(base, {match[1] for match in found.values()})
    renamed = {
        f"base_model.model.{names[found[key][1]]}.{found[key][2]}" if key in found else key: weight
        for key, weight in weights.items()
    }
    save_file(renamed, file, metadata={"format": "pt"})
    if any(_leaf(ours) != _leaf(theirs) for ours, theirs in names.items()):
        settings = folder / "adapter_config.json"
        content = json.loads(settings.read_text(encoding="utf-8"))
        content["target_modules"] = sorted(names.values())
        settings.write_text(json.dumps(content, indent=2), encoding="utf-8")


def _huggingface_names(model: ScratchPreTrainedModel, modules: Iterable[str]) -> dict[str, str]:
    """What HuggingFace's class calls our modules: both are paths from the root of the model."""
    used_at_load: Any = getattr(model, "_weight_conversions", None)
    model._weight_conversions = saving_table(model)
    try:
        names = {}
        for module in modules:
            (key,) = revert_weight_conversion(model, {f"{module}.weight": torch.empty(0)})
            names[module] = key.removesuffix(".weight")
        return names
    finally:
        model._weight_conversions = used_at_load


def _leaf(path: str) -> str:
    return path.rsplit(".", 1)[-1]


def merge(model: Any) -> nn.Module:
    """The plain model with the updates added to its weights (float32, as it was trained)."""
    return model.merge_and_unload()
