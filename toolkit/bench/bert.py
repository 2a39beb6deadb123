"""The BERTs of the benchmarks: checkpoints with random weights, for both classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from toolkit.bench.classes import loaders
from toolkit.bench.texts import LONGEST, VOCABULARY

LOADERS = loaders("BertForSequenceClassification")
NO_DROPOUT: dict[str, Any] = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SHAPE = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}
"""Of BERT-base."""


def write_classifier(folder: Path, **settings: Any) -> None:
    """A classifier with random weights; the same every time.

    Its last layer has larger weights than a new one: logits of order 1 show errors.

    Args:
        **settings: of its `BertConfig`.
    """
    from transformers import BertConfig, BertForSequenceClassification

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForSequenceClassification(BertConfig(**settings))
        with torch.no_grad():
            model.classifier.weight.normal_(std=0.2)
    model.save_pretrained(folder)


def write_bert(folder: Path, layers: int) -> None:
    """A classifier as wide as BERT-base."""
    write_classifier(
        folder, vocab_size=VOCABULARY, num_hidden_layers=layers,
        max_position_embeddings=2 * LONGEST, **SHAPE,
    )  # fmt: skip


def write_small_bert(folder: Path, **settings: Any) -> None:
    """A classifier of 2 layers, width 64, without dropout; the same weights every time.

    Wide ones: new weights say "one half" to every text, and no loss would tell one from another.

    Args:
        **settings: of its `BertConfig`.
    """
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128,
        **NO_DROPOUT, **settings,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForSequenceClassification(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 2:
                    parameter.normal_(std=0.3)
    model.save_pretrained(folder)
