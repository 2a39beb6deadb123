"""Tiny configs on which the Transformer is compared with HuggingFace's Marian."""

from typing import Any

TINY: dict[str, Any] = {
    "vocab_size": 61,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 24,
    "init_std": 0.3,
    "activation_function": "swish",
    "scale_embedding": True,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "pad_token_id": 60,
    "decoder_start_token_id": 60,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
}

VARIANTS: dict[str, dict[str, Any]] = {
    "opus-mt": {},
    "relu, as in the paper": {"activation_function": "relu"},
    "gelu": {"activation_function": "gelu"},
    "gelu_new": {"activation_function": "gelu_new"},
    "unscaled embeddings": {"scale_embedding": False},
    "separate embeddings": {
        "share_encoder_decoder_embeddings": False,
        "decoder_vocab_size": 53,
        "pad_token_id": 52,
        "decoder_start_token_id": 52,
    },
    "separate, untied": {
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
        "decoder_vocab_size": 53,
        "pad_token_id": 52,
        "decoder_start_token_id": 52,
    },
    "untied": {"tie_word_embeddings": False},
    "deep encoder, shallow decoder": {"encoder_layers": 3, "decoder_layers": 1},
    "other widths and heads": {
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 8,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 24,
    },
    "one head of odd width": {
        "d_model": 15,
        "encoder_attention_heads": 1,
        "decoder_attention_heads": 3,
    },
    "every dropout": {"dropout": 0.2, "attention_dropout": 0.3, "activation_dropout": 0.1},
    "no dropout": {"dropout": 0.0},
    "layers dropped in training": {"encoder_layerdrop": 0.4, "decoder_layerdrop": 0.4},
    "padding token 0": {"pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1},
}
