"""The model of a run as this package computes it: one side of the check of a shared folder."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import joblib
from safetensors.torch import load_file
from torch import nn
from torch.nn.functional import linear, normalize

from scratch_models.hub.auto import scratch_class
from toolkit.frozen import image_features, mean_pooled_features
from toolkit.modeling import Implementation, load_pretrained, load_tokenizer
from toolkit.sharing.source import CLASSIFIER, TFIDF, Source
from toolkit.sharing.tasks import HEADS, Kind


def load_own_model(source: Source, kind: Kind) -> Any:
    """Our class where there is one, HuggingFace's else; in evaluation mode.

    Raises:
        UserError: its weights cannot be read.
    """
    if kind.check == "sklearn":
        return joblib.load(source.model / TFIDF)
    folder, head = str(source.model), "model" if source.is_frozen else HEADS[kind.check]
    model = load_pretrained(folder, head, implementation=_implementation(source, head)).model.eval()
    return _Frozen(model, source.model, source.reads_images) if source.is_frozen else model


def load_own_processor(source: Source, kind: Kind) -> Any:
    """Its tokenizer or image processor; None for scikit-learn.

    Raises:
        UserError: it cannot be read.
    """
    if kind.check == "sklearn":
        return None
    if source.reads_images:
        from transformers import AutoImageProcessor

        return AutoImageProcessor.from_pretrained(source.model)
    return load_tokenizer(str(source.model))


def _implementation(source: Source, head: str) -> Implementation:
    try:
        scratch_class(str(source.model_type), head)
    except ValueError:
        return "hf"
    return "scratch"


class _Frozen:
    """Encoder and linear classifier, as `toolkit.frozen` says how they are used."""

    def __init__(self, encoder: nn.Module, folder: Path, images: bool) -> None:
        self.encoder, self.weights = encoder, load_file(folder / CLASSIFIER)
        self.features = image_features if images else mean_pooled_features

    def __call__(self, **batch: Any) -> SimpleNamespace:
        features = normalize(self.features(self.encoder, batch)["features"])
        return SimpleNamespace(
            logits=linear(features, self.weights["weight"], self.weights["bias"])
        )
