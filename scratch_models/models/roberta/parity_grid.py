"""The tiny models on which RoBERTa is compared with HuggingFace's."""

TINY = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 26,
    "type_vocab_size": 1,
    "initializer_range": 0.3,
}

VARIANTS = {
    "relu": {"hidden_act": "relu"},
    "eps 0.1": {"layer_norm_eps": 0.1},
    "two segments": {"type_vocab_size": 2},
    "padding token 3": {"pad_token_id": 3},
    "padding token 0": {"pad_token_id": 0},
    "one layer, one head": {"num_hidden_layers": 1, "num_attention_heads": 1},
    "no dropout": {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    "dropout of the classifier": {"classifier_dropout": 0.4},
}
