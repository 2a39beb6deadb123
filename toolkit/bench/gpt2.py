"""The GPT-2 of the benchmarks: one checkpoint with random weights, in both classes."""

from __future__ import annotations

from pathlib import Path

import torch

from toolkit.bench.classes import loaders

LOADERS = loaders("GPT2LMHeadModel")
VOCABULARY = 50_257
END_OF_TEXT = VOCABULARY - 1
SHAPE = {"n_embd": 768, "n_head": 12}
"""Of the small GPT-2."""


def write_gpt2(folder: Path, layers: int) -> None:
    """As wide as the small GPT-2, with its 50,257 tokens; the same weights every time.

    Wider ones than a new model has, so that the likeliest next tokens lie apart.
    """
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=VOCABULARY, n_layer=layers, initializer_range=0.05, **SHAPE)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = GPT2LMHeadModel(config)
    model.generation_config.pad_token_id = END_OF_TEXT
    model.save_pretrained(folder)
