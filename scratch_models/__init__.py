"""The Transformer architectures, written from scratch and equal to HuggingFace's.

Every public class can be imported from here; a class is read from disk when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from scratch_models.hub import architecture

if TYPE_CHECKING:  # for editors and type checkers; another architecture works without
    from scratch_models.baselines.cifar_resnet.modeling import (
        ScratchCifarResNetConfig,
        ScratchCifarResNetForImageClassification,
    )
    from scratch_models.baselines.lstm.modeling import (
        ScratchLSTMConfig,
        ScratchLSTMForSequenceClassification,
    )
    from scratch_models.baselines.resnet.modeling import (
        ScratchResNetForImageClassification,
        ScratchResNetModel,
    )
    from scratch_models.hub.adapters import Adapter
    from scratch_models.hub.architecture import Architecture
    from scratch_models.hub.auto import (
        disable,
        enable,
        scratch_class,
    )
    from scratch_models.hub.base import ScratchPreTrainedModel
    from scratch_models.hub.generation import LimitedPositionsGenerationMixin
    from scratch_models.hub.mapping import (
        AlsoNamed,
        OldName,
        Rename,
        SeparateChunk,
        TransposedLinears,
    )
    from scratch_models.hub.preallocated_cache import PreallocatedCache, PreallocatedLayer
    from scratch_models.hub.spellings import Place
    from scratch_models.inference import FusedFeedForward, PrepackedLinear, optimize_for_inference
    from scratch_models.layers.attention import MultiHeadAttention
    from scratch_models.layers.attention_by_hand import MultiHeadAttentionByHand
    from scratch_models.layers.cached_attention import CausalSelfAttention, CrossAttention
    from scratch_models.layers.embeddings import TokenPositionSegmentEmbeddings
    from scratch_models.layers.feed_forward import FeedForward
    from scratch_models.layers.packing import PackedSequences
    from scratch_models.layers.patch_embeddings import PatchEmbeddings
    from scratch_models.layers.positions import LearnedPositions, SinusoidalPositions
    from scratch_models.layers.stack import (
        DecoderLayer,
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
    from scratch_models.models.gpt2.modeling import (
        ScratchGPT2ForSequenceClassification,
        ScratchGPT2ForTokenClassification,
        ScratchGPT2LMHeadModel,
        ScratchGPT2Model,
    )
    from scratch_models.models.paper_transformer.modeling import (
        ScratchPaperTransformerConfig,
        ScratchPaperTransformerForConditionalGeneration,
        to_marian,
    )
    from scratch_models.models.roberta.modeling import (
        ScratchRobertaForMaskedLM,
        ScratchRobertaForQuestionAnswering,
        ScratchRobertaForSequenceClassification,
        ScratchRobertaForTokenClassification,
        ScratchRobertaModel,
    )
    from scratch_models.models.transformer.modeling import (
        ScratchTransformerForConditionalGeneration,
        ScratchTransformerModel,
    )
    from scratch_models.models.vit.modeling import (
        ScratchViTForImageClassification,
        ScratchViTModel,
    )
    from scratch_models.parity import (
        ParityPair,
        ParityReport,
        ParityRow,
        check_architecture,
        check_checkpoint,
    )

# The classes of the architectures are found in their folders; these are the other public names.
_NAMES = {
    "scratch_models.hub.adapters": ["Adapter"],
    "scratch_models.hub.architecture": ["Architecture"],
    "scratch_models.hub.auto": ["disable", "enable", "scratch_class"],
    "scratch_models.hub.base": ["ScratchPreTrainedModel"],
    "scratch_models.hub.generation": ["LimitedPositionsGenerationMixin"],
    "scratch_models.hub.mapping": [
        "AlsoNamed",
        "OldName",
        "Rename",
        "SeparateChunk",
        "TransposedLinears",
    ],
    "scratch_models.hub.preallocated_cache": ["PreallocatedCache", "PreallocatedLayer"],
    "scratch_models.hub.spellings": ["Place"],
    "scratch_models.inference": ["FusedFeedForward", "PrepackedLinear", "optimize_for_inference"],
    "scratch_models.layers.attention": ["MultiHeadAttention"],
    "scratch_models.layers.attention_by_hand": ["MultiHeadAttentionByHand"],
    "scratch_models.layers.cached_attention": ["CausalSelfAttention", "CrossAttention"],
    "scratch_models.layers.embeddings": ["TokenPositionSegmentEmbeddings"],
    "scratch_models.layers.feed_forward": ["FeedForward"],
    "scratch_models.layers.packing": ["PackedSequences"],
    "scratch_models.layers.patch_embeddings": ["PatchEmbeddings"],
    "scratch_models.layers.positions": ["LearnedPositions", "SinusoidalPositions"],
    "scratch_models.layers.stack": [
        "DecoderLayer",
        "EncoderLayer",
        "EncoderStack",
        "post_norm",
        "pre_norm",
    ],
    "scratch_models.parity": [
        "ParityPair",
        "ParityReport",
        "ParityRow",
        "check_architecture",
        "check_checkpoint",
    ],
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None and not name.startswith("_"):
        home = architecture.public_names().get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*_HOME, *architecture.public_names()})
