"""A GPT-2 to be trained from random weights, and the tokens that end and pad its texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn
from transformers import AutoModelForCausalLM, GPT2Config

from scratch_models.hub.auto import scratch_class
from toolkit.config import check_range
from toolkit.errors import UserError
from toolkit.modeling import Implementation

HEAD = "causal-lm"


@dataclass
class Gpt2Shape:
    """A GPT-2 that is small enough to be trained on a few thousand texts."""

    layers: int = 4
    """Transformer blocks."""
    hidden_size: int = 256
    """Width; the feed-forward part is four times as wide."""
    heads: int = 4
    """Attention heads; they divide the width."""
    vocabulary: int = 4000
    """Tokens of the byte-level vocabulary learned from the training texts, 256 bytes among them."""
    dropout: float = 0.1
    """Of embeddings, attention and what every block adds."""


def new_gpt2(
    shape: Gpt2Shape, tokenizer: Any, block_size: int, implementation: Implementation
) -> nn.Module:
    """A GPT-2 with random weights that predicts the next token.

    Args:
        block_size: positions; what is longer it cannot read.

    Raises:
        UserError: a size below 1, or heads that do not divide the width.
    """
    for key in ("layers", "hidden_size", "heads"):
        check_range(f"shape.{key}", getattr(shape, key), 1, 1 << 20)
    check_range("shape.dropout", shape.dropout, 0, 1)
    check_range("block_size", block_size, 2, 1 << 20)
    if shape.hidden_size % shape.heads:
        raise UserError(
            f"--shape.heads {shape.heads} does not divide --shape.hidden_size {shape.hidden_size}"
        )
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=block_size,
        n_embd=shape.hidden_size,
        n_layer=shape.layers,
        n_head=shape.heads,
        resid_pdrop=shape.dropout,
        embd_pdrop=shape.dropout,
        attn_pdrop=shape.dropout,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    if implementation == "hf":
        model: nn.Module = AutoModelForCausalLM.from_config(config)
    else:
        model = scratch_class(config.model_type, HEAD)(config)
    return model


def agree_on_special_tokens(model: Any, tokenizer: Any) -> None:
    """Let generation stop at the tokenizer's end of text; it pads where there is no padding token.

    GPT-2's own tokenizer has none. What is padded is masked, so a token of its own is not needed.
    """
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    # Not in the model's own config: transformers would warn of blocks that end with this token.
    model.generation_config.bos_token_id = tokenizer.bos_token_id
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
