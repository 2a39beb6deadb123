"""The BERT of the benchmarks: one checkpoint with random weights, in both classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from toolkit.bench.texts import LONGEST, VOCABULARY

HUGGINGFACE, OURS = "transformers", "scratch_models"
SHAPE = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
"""Of BERT-base."""


def write_bert(folder: Path, layers: int) -> None:
    """A classifier as wide as BERT-base; the same weights every time.

    Its last layer has larger weights than a new one: logits of order 1 show errors.
    """
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=VOCABULARY, num_hidden_layers=layers, max_position_embeddings=2 * LONGEST,
        **SHAPE,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForSequenceClassification(config)
        with torch.no_grad():
            model.classifier.weight.normal_(std=0.2)
    model.save_pretrained(folder)


def load_huggingface(folder: Path, **settings: Any) -> Any:
    """transformers' class, with its SDPA attention."""
    from transformers import BertForSequenceClassification

    return BertForSequenceClassification.from_pretrained(
        folder, attn_implementation="sdpa", **settings
    )


def load_ours(folder: Path, **settings: Any) -> Any:
    """Our class, likewise."""
    from scratch_models import ScratchBertForSequenceClassification

    return ScratchBertForSequenceClassification.from_pretrained(
        folder, attn_implementation="sdpa", **settings
    )
