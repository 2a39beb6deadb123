"""The tiny models on which BERT is compared with HuggingFace's."""

from typing import Any

TINY: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 24,
    "initializer_range": 0.3,
    "num_labels": 3,
}

VARIANTS: dict[str, dict[str, Any]] = {
    "gelu_new": {"hidden_act": "gelu_new"},
    "relu": {"hidden_act": "relu"},
    "eps 0.1": {"layer_norm_eps": 0.1},
    "eps 1e-5": {"layer_norm_eps": 1e-5},
    "one segment": {"type_vocab_size": 1},
    "three segments": {"type_vocab_size": 3},
    "one layer": {"num_hidden_layers": 1},
    "five layers": {"num_hidden_layers": 5},
    "one head": {"num_attention_heads": 1},
    "narrow inside": {"intermediate_size": 8},
    "wide": {"hidden_size": 60, "num_attention_heads": 5, "intermediate_size": 100},
    "padding token 7": {"pad_token_id": 7},
    "no padding token": {"pad_token_id": None},
    "no dropout": {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    "dropout of the classifier": {"classifier_dropout": 0.4},
}

HEAD_CHANGES: dict[str, dict[str, Any]] = {"question-answering": {"num_labels": 2}}
