"""Which of our classes stands for which of HuggingFace's, and the Auto classes on request."""

from __future__ import annotations

import importlib
from typing import Any

import transformers
from transformers import AutoConfig

from scratch_models.hub.base import ScratchPreTrainedModel

HEADS = {
    "model": "AutoModel",
    "pretraining": "AutoModelForPreTraining",
    "masked-lm": "AutoModelForMaskedLM",
    "sequence-classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "question-answering": "AutoModelForQuestionAnswering",
}
"""What a model is asked to do, and the Auto class HuggingFace has for it."""

_BERT = "scratch_models.models.bert.modeling"
_LSTM = "scratch_models.baselines.lstm"
_CLASSES = {
    ("bert", "model"): (_BERT, "ScratchBertModel"),
    ("bert", "pretraining"): (_BERT, "ScratchBertForPreTraining"),
    ("bert", "masked-lm"): (_BERT, "ScratchBertForMaskedLM"),
    ("bert", "sequence-classification"): (_BERT, "ScratchBertForSequenceClassification"),
    ("bert", "token-classification"): (_BERT, "ScratchBertForTokenClassification"),
    ("bert", "question-answering"): (_BERT, "ScratchBertForQuestionAnswering"),
    ("scratch_lstm", "sequence-classification"): (_LSTM, "ScratchLSTMForSequenceClassification"),
}


def scratch_class(model_type: str, head: str = "model") -> type[ScratchPreTrainedModel]:
    """Our class for an architecture (`config.model_type`) and a head (a key of `HEADS`).

    Raises:
        ValueError: for an architecture or head we have not, naming those we have.
    """
    if (model_type, head) not in _CLASSES:
        heads = [h for m, h in _CLASSES if m == model_type]
        known = ", ".join(sorted({m for m, _ in _CLASSES}))
        raise ValueError(
            f"no from-scratch {model_type!r} model for {head!r}: it has {', '.join(heads)}."
            if heads
            else f"no from-scratch model of type {model_type!r}: there are {known}."
        )
    module, name = _CLASSES[model_type, head]
    return getattr(importlib.import_module(module), name)


def enable() -> None:
    """Let HuggingFace's Auto classes build our models, in this process, until `disable`.

    Opt-in, as it changes what `AutoModel.from_pretrained` returns to everybody in the process.
    """
    for model_type, head in _CLASSES:
        model_class = scratch_class(model_type, head)
        config_class = model_class.config_class
        if config_class.__module__.startswith("scratch_models."):
            AutoConfig.register(model_type, config_class, exist_ok=True)
        _auto_class(head).register(config_class, model_class, exist_ok=True)


def disable() -> None:
    """Give the Auto classes back to HuggingFace's own models."""
    for model_type, head in _CLASSES:
        config_class = scratch_class(model_type, head).config_class
        _auto_class(head)._model_mapping._extra_content.pop(config_class, None)


def _auto_class(head: str) -> Any:
    return getattr(transformers, HEADS[head])
