"""Train one BPE vocabulary for both languages of a translation.

Sennrich et al. 2016 (arXiv:1508.07909): pairs of neighbouring pieces are joined, the most frequent
first, and source and target share the pieces (their section 3.2, "joint BPE").
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolkit.data.word_counts import count_words
from toolkit.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

PAD, END, UNKNOWN = "<pad>", "</s>", "<unk>"
SPECIAL_TOKENS = [PAD, END, UNKNOWN]  # ids 0, 1, 2, as the paper's Transformer expects
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
CHARACTERS_SHARE = 0.9
"""Of the vocabulary, the most that may be single characters; rarer ones are spelled in bytes."""


def train_joint_bpe(
    texts: Iterable[str],
    vocab_size: int,
    *,
    min_frequency: int = 2,
    lowercase: bool = False,
    model_max_length: int = 512,
) -> PreTrainedTokenizerFast:
    """Learn at most `vocab_size` pieces from the texts of both languages.

    Pieces are joined from characters, within words (where a language writes them apart); digits and
    punctuation stay single, so that numbers are copied digit by digit. A character that is not in
    the vocabulary becomes its UTF-8 bytes, so nothing is ever unknown. Decoding gives the text back
    exactly, but for spaces at its ends, U+2581 (a space) and upper case where `lowercase`. The same
    texts in any order give the same vocabulary, in every process.

    Args:
        texts: the training texts of source and target, and no others.
        min_frequency: a pair of pieces seen less often is not joined.

    Raises:
        UserError: no texts, or a vocabulary without room beside special tokens and bytes.
    """
    from transformers import PreTrainedTokenizerFast

    fixed = len(SPECIAL_TOKENS) + len(BYTES)
    room = vocab_size - fixed
    if room < 2:
        raise UserError(
            f"a vocabulary of {vocab_size} has no room beside {fixed} special tokens and bytes."
        )
    untrained = _tokenizer(lowercase)
    words = count_words(texts, untrained)
    if not words:
        raise UserError("there is no text to learn a vocabulary from.")
    alphabet = _alphabet(words, max(1, int(CHARACTERS_SHARE * room)))
    learned = _learn(words, alphabet, room, min_frequency)
    return PreTrainedTokenizerFast(
        tokenizer_object=_with_pieces(untrained, learned),
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        model_max_length=model_max_length,
        clean_up_tokenization_spaces=False,
        split_special_tokens=True,  # "</s>" in a text is text
        model_input_names=["input_ids", "attention_mask"],
    )


def _tokenizer(lowercase: bool) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN, byte_fallback=True))
    steps: list[normalizers.Normalizer] = [normalizers.Strip()]
    if lowercase:
        steps.append(normalizers.Lowercase())
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(prepend_scheme="first"),  # a space is part of the next word
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Punctuation("isolated"),
        ]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.ByteFallback(),
            decoders.Metaspace(prepend_scheme="first"),
            decoders.Fuse(),
        ]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", pair=f"$A $B {END}", special_tokens=[(END, SPECIAL_TOKENS.index(END))]
    )
    return tokenizer


def _alphabet(words: Counter[str], most: int) -> list[str]:
    """The most frequent characters, sorted; of equally rare ones always the same are kept."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    ranked = sorted(counts, key=lambda character: (-counts[character], character))
    return sorted(ranked[:most])


def _learn(words: Counter[str], alphabet: list[str], room: int, min_frequency: int) -> Tokenizer:
    """Let `tokenizers` learn, from words that were cleaned and split already.

    The alphabet is named: of equally rare characters the library would keep any.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\n", "removed")
    trainer = trainers.BpeTrainer(
        vocab_size=room + len(SPECIAL_TOKENS),
        min_frequency=min_frequency,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=sys.stderr.isatty(),
    )
    lines = (
        "\n".join([word] * min(1000, count - start))
        for word, count in sorted(words.items())
        for start in range(0, count, 1000)
    )
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def _with_pieces(tokenizer: Tokenizer, learned: Tokenizer) -> Tokenizer:
    """`tokenizer` with the special tokens, the 256 bytes and what was learned, in this order."""
    from tokenizers import Tokenizer

    content, model = (json.loads(t.to_str()) for t in (tokenizer, learned))
    vocabulary = model["model"]["vocab"]
    pieces = [p for p in sorted(vocabulary, key=vocabulary.get) if p not in SPECIAL_TOKENS]
    ordered = [*SPECIAL_TOKENS, *BYTES, *pieces]
    content["model"]["vocab"] = {piece: number for number, piece in enumerate(ordered)}
    content["model"]["merges"] = model["model"]["merges"]
    return Tokenizer.from_str(json.dumps(content))
