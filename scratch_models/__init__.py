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
    from scratch_models.hub.auto import (
        disable,
        enable,
        scratch_class,
    )
    from scratch_models.hub.base import ScratchPreTrainedModel
    from scratch_models.hub.mapping import OldName, Rename
    from scratch_models.layers.attention import MultiHeadAttention
    from scratch_models.layers.attention_by_hand import MultiHeadAttentionByHand
    from scratch_models.layers.embeddings import TokenPositionSegmentEmbeddings
    from scratch_models.layers.feed_forward import FeedForward
    from scratch_models.layers.positions import LearnedPositions, SinusoidalPositions
    from scratch_models.layers.stack import (
        EncoderLayer,
        EncoderStack,
        post_norm,
        pre_norm,
    )
    from scratch_models.models.bert.modeling import (
        MaskedLMHead,
        Pooler,
        ScratchBertForMaskedLM,
        ScratchBertForPreTraining,
        ScratchBertForQuestionAnswering,
        ScratchBertForSequenceClassification,
        ScratchBertForTokenClassification,
        ScratchBertModel,
        ScratchBertPreTrainedModel,
    )
    from scratch_models.parity import (
        ParityPair,
        ParityReport,
        ParityRow,
        check_checkpoint,
    )

_NAMES = {
    "scratch_models.baselines.lstm": ["ScratchLSTMConfig", "ScratchLSTMForSequenceClassification"],
    "scratch_models.hub.auto": ["disable", "enable", "scratch_class"],
    "scratch_models.hub.base": ["ScratchPreTrainedModel"],
    "scratch_models.hub.mapping": ["OldName", "Rename"],
    "scratch_models.layers.attention": ["MultiHeadAttention"],
    "scratch_models.layers.attention_by_hand": ["MultiHeadAttentionByHand"],
    "scratch_models.layers.embeddings": ["TokenPositionSegmentEmbeddings"],
    "scratch_models.layers.feed_forward": ["FeedForward"],
    "scratch_models.layers.positions": ["LearnedPositions", "SinusoidalPositions"],
    "scratch_models.layers.stack": ["EncoderLayer", "EncoderStack", "post_norm", "pre_norm"],
    "scratch_models.models.bert.modeling": [
        "MaskedLMHead",
        "Pooler",
        "ScratchBertForMaskedLM",
        "ScratchBertForPreTraining",
        "ScratchBertForQuestionAnswering",
        "ScratchBertForSequenceClassification",
        "ScratchBertForTokenClassification",
        "ScratchBertModel",
        "ScratchBertPreTrainedModel",
    ],
    "scratch_models.parity": ["ParityPair", "ParityReport", "ParityRow", "check_checkpoint"],
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "EncoderLayer",
    "EncoderStack",
    "FeedForward",
    "LearnedPositions",
    "MaskedLMHead",
    "MultiHeadAttention",
    "MultiHeadAttentionByHand",
    "OldName",
    "ParityPair",
    "ParityReport",
    "ParityRow",
    "Pooler",
    "Rename",
    "ScratchBertForMaskedLM",
    "ScratchBertForPreTraining",
    "ScratchBertForQuestionAnswering",
    "ScratchBertForSequenceClassification",
    "ScratchBertForTokenClassification",
    "ScratchBertModel",
    "ScratchBertPreTrainedModel",
    "ScratchLSTMConfig",
    "ScratchLSTMForSequenceClassification",
    "ScratchPreTrainedModel",
    "SinusoidalPositions",
    "TokenPositionSegmentEmbeddings",
    "check_checkpoint",
    "disable",
    "enable",
    "post_norm",
    "pre_norm",
    "scratch_class",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
