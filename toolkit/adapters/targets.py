"""Which layers of a model get an update, and which modules are trained whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from toolkit.console import notify
from toolkit.errors import UserError

OTHER_NAMES = {
    "query": ("q_proj", "q_lin", "q", "c_attn"),
    "key": ("k_proj", "k_lin", "k", "c_attn"),
    "value": ("v_proj", "v_lin", "v", "c_attn"),
}
"""Our names of layers, and those of HuggingFace's classes: Marian and ViT have `q_proj`, DistilBERT
`q_lin`, T5 `q`, and GPT-2 one `c_attn` for all three."""

_TASK_TYPES = {
    r"ForSequenceClassification": "SEQ_CLS",
    r"ForTokenClassification": "TOKEN_CLS",
    r"ForQuestionAnswering": "QUESTION_ANS",
    r"(ForCausalLM|LMHeadModel)": "CAUSAL_LM",
    r"(ForConditionalGeneration|MTModel)": "SEQ_2_SEQ_LM",
    r"Model": "FEATURE_EXTRACTION",
}
"""Ends of class names and peft's word for what the class does."""

_HEADS = ("classifier", "score", "qa_outputs")
"""The last layers of classifiers: what a task adds to a model."""


@dataclass
class LoraSettings:
    """Size and place of the low-rank updates of LoRA and DoRA."""

    rank: int = 8
    """Rank r of the update B A."""
    alpha: float = 16.0
    """The update is scaled by alpha / rank."""
    dropout: float = 0.05
    """Dropout before A."""
    targets: list[str] = field(default_factory=lambda: ["query", "value"])
    """Names of the linear layers that get an update; query, key and value are
    understood for HuggingFace's classes too, whatever those call them."""


def linear_layers(model: nn.Module) -> list[str]:
    """Paths of all layers that can get an update."""
    return [name for name, part in model.named_modules() if isinstance(part, nn.Linear | Conv1D)]


def layers_named(targets: Iterable[str], layers: Iterable[str]) -> list[str]:
    """The layers whose path ends with one of the names."""
    ends = tuple(f".{target}" for target in targets)
    return [layer for layer in layers if f".{layer}".endswith(ends)]


def choose_targets(model: nn.Module, targets: list[str]) -> list[str]:
    """The names a model has of the asked ones, ours translated where its class has others.

    Raises:
        UserError: no layer has one of the names; lists the linear layers there are.
    """
    layers = linear_layers(model)
    found: dict[str, None] = {}
    unknown = []
    for target in targets:
        names = (target, *OTHER_NAMES.get(target, ()))
        known = next((name for name in names if layers_named([name], layers)), None)
        if known is None:
            unknown.append(target)
        else:
            found[known] = None
    if not found:
        raise UserError(
            f"--lora.targets {targets}: the model has no such linear layers; it has "
            f"{', '.join(sorted({layer.rpartition('.')[2] for layer in layers}))}."
        )
    if unknown:
        notify(f"warning: --lora.targets: no layer is called {', '.join(unknown)}; left out")
    return list(found)


def task_type(model: nn.Module) -> str | None:
    """peft's name of what a model does; None where peft has none and passes inputs on as they are.

    peft hands `input_ids` to the models of its tasks: it knows texts only.
    """
    if not isinstance(model, PreTrainedModel) or model.main_input_name != "input_ids":
        return None
    name = type(model).__name__
    return next((task for end, task in _TASK_TYPES.items() if re.search(f"{end}$", name)), None)


def modules_to_train(model: nn.Module, new_modules: list[str]) -> list[str] | None:
    """The new modules and the task's head, which are trained whole and saved with the adapter.

    Less the heads that peft adds by itself for the tasks it knows.
    """
    heads = [name for name, _ in model.named_children() if name in _HEADS]
    added = _HEADS if task_type(model) else ()
    return [name for name in dict.fromkeys([*new_modules, *heads]) if name not in added] or None
