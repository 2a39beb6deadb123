"""The tiny models on which GPT-2 is compared with HuggingFace's."""

from typing import Any

TINY: dict[str, Any] = {
    "vocab_size": 61,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 32,
    "initializer_range": 0.3,
    "bos_token_id": 1,
    "eos_token_id": 2,
}

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "gelu": {"activation_function": "gelu"},
    "relu": {"activation_function": "relu"},
    "silu": {"activation_function": "silu"},
    "tanh": {"activation_function": "tanh"},
    "eps 0.1": {"layer_norm_epsilon": 0.1},
    "one layer, one head": {"n_layer": 1, "n_head": 1},
    "five layers": {"n_layer": 5},
    "narrow inside": {"n_inner": 8},
    "wide": {"n_embd": 60, "n_head": 5, "n_inner": 100},
    "scores not scaled": {"scale_attn_weights": False},
    "scores scaled by layer": {"scale_attn_by_inverse_layer_idx": True},
    "scores upcast": {"reorder_and_upcast_attn": True},
    "untied": {"tie_word_embeddings": False},
    "no cache": {"use_cache": False},
    "no dropout": {"embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0},
    "dropout everywhere": {"embd_pdrop": 0.2, "attn_pdrop": 0.3, "resid_pdrop": 0.4},
}

HEAD_CHANGES: dict[str, dict[str, Any]] = {"sequence-classification": {"pad_token_id": 0}}
