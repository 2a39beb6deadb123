"""Train a byte-level BPE vocabulary of one's own, in the form of GPT-2's tokenizer."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolkit.errors import UserError

if TYPE_CHECKING:
    from transformers import GPT2Tokenizer

END_OF_TEXT = "<|endoftext|>"
_BYTES = 256


def train_byte_bpe(
    texts: Iterable[str], vocab_size: int, *, min_frequency: int = 2, model_max_length: int = 1024
) -> GPT2Tokenizer:
    """Learn at most `vocab_size` tokens from texts (Radford et al. 2019, section 2.2).

    Every byte is a token, so there is no text that cannot be written, and none that is unknown. The
    same texts in any order give the same vocabulary, in every process. The result is HuggingFace's
    GPT2Tokenizer: save_pretrained writes a folder that AutoTokenizer loads. <|endoftext|>, id 0,
    begins, ends and pads.

    Args:
        texts: the training texts, and no others: a vocabulary learnt from test texts leaks.
        min_frequency: a pair of tokens seen less often is not joined.

    Raises:
        UserError: no texts, or a vocabulary that has no room for joined bytes.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPT2Tokenizer

    if vocab_size <= _BYTES + 1:
        raise UserError(
            f"a vocabulary of {vocab_size} has no room beside the {_BYTES} bytes and {END_OF_TEXT}."
        )
    texts = [text for text in texts if text.strip()]
    if not texts:
        raise UserError("there is no text to learn a vocabulary from.")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=sys.stderr.isatty(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    learnt = json.loads(tokenizer.to_str())["model"]
    return GPT2Tokenizer(
        vocab=learnt["vocab"],
        merges=[tuple(merge) for merge in learnt["merges"]],
        bos_token=END_OF_TEXT,
        eos_token=END_OF_TEXT,
        unk_token=END_OF_TEXT,
        pad_token=END_OF_TEXT,
        model_max_length=model_max_length,
    )
