"""The Transformer architectures, written from scratch and equal to HuggingFace's.

Every public class can be imported from here; a class is read from disk when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scratch_models.baselines.lstm import (
        ScratchLSTMConfig,
        ScratchLSTMForSequenceClassification,
    )
    from scratch_models.hub.auto import disable, enable, scratch_class
    from scratch_models.hub.base import ScratchPreTrainedModel
    from scratch_models.models.bert.modeling import (
        ScratchBertForMaskedLM,
        ScratchBertForPreTraining,
        ScratchBertForQuestionAnswering,
        ScratchBertForSequenceClassification,
        ScratchBertForTokenClassification,
        ScratchBertModel,
    )

_HOME = {
    "disable": "scratch_models.hub.auto",
    "enable": "scratch_models.hub.auto",
    "scratch_class": "scratch_models.hub.auto",
    "ScratchPreTrainedModel": "scratch_models.hub.base",
    "ScratchBertForMaskedLM": "scratch_models.models.bert.modeling",
    "ScratchBertForPreTraining": "scratch_models.models.bert.modeling",
    "ScratchBertForQuestionAnswering": "scratch_models.models.bert.modeling",
    "ScratchBertForSequenceClassification": "scratch_models.models.bert.modeling",
    "ScratchBertForTokenClassification": "scratch_models.models.bert.modeling",
    "ScratchBertModel": "scratch_models.models.bert.modeling",
    "ScratchLSTMConfig": "scratch_models.baselines.lstm",
    "ScratchLSTMForSequenceClassification": "scratch_models.baselines.lstm",
}

__all__ = [
    "ScratchBertForMaskedLM",
    "ScratchBertForPreTraining",
    "ScratchBertForQuestionAnswering",
    "ScratchBertForSequenceClassification",
    "ScratchBertForTokenClassification",
    "ScratchBertModel",
    "ScratchLSTMConfig",
    "ScratchLSTMForSequenceClassification",
    "ScratchPreTrainedModel",
    "disable",
    "enable",
    "scratch_class",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
