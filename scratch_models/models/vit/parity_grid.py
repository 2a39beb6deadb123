"""The configs ViT is compared with HuggingFace's over."""

from typing import Any

TINY: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 16,
    "patch_size": 8,
    "initializer_range": 0.3,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}

VARIANTS: dict[str, dict[str, Any]] = {
    "gelu_new": {"hidden_act": "gelu_new"},
    "relu": {"hidden_act": "relu"},
    "eps 0.1": {"layer_norm_eps": 0.1},
    "no bias in queries, keys and values": {"qkv_bias": False},
    "rectangular image": {"image_size": (16, 40)},
    "rectangular patch": {"image_size": (24, 16), "patch_size": (8, 4)},
    "one patch": {"image_size": 8},
    "grey image": {"num_channels": 1},
    "one layer": {"num_hidden_layers": 1},
    "four layers": {"num_hidden_layers": 4},
    "one head": {"num_attention_heads": 1},
    "wide": {"hidden_size": 60, "num_attention_heads": 5, "intermediate_size": 100},
    "narrow pooler with relu": {"pooler_output_size": 12, "pooler_act": "relu"},
    "no dropout": {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
}
