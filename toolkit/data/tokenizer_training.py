"""Train a WordPiece vocabulary of one's own, in the form of BERT's tokenizer."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolkit.data.word_counts import count_words
from toolkit.errors import UserError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import BertTokenizer

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PREFIX = "##"  # of a piece that continues a word


def train_wordpiece(
    texts: Iterable[str],
    vocab_size: int,
    *,
    min_frequency: int = 2,
    lowercase: bool = True,
    model_max_length: int = 512,
) -> BertTokenizer:
    """Learn at most `vocab_size` pieces from texts; Chinese characters are pieces of their own.

    The same texts in any order give the same vocabulary, in every process. The result is
    HuggingFace's BertTokenizer: save_pretrained writes a folder that AutoTokenizer loads. [PAD]
    [UNK] [CLS] [SEP] [MASK] have the ids 0 to 4.

    Args:
        texts: the training texts, and no others: a vocabulary learnt from test texts leaks.
        min_frequency: a pair of pieces seen less often is not joined.

    Raises:
        UserError: no texts, or a vocabulary with room for special tokens only.
    """
    from transformers import BertTokenizer

    if vocab_size <= len(SPECIAL_TOKENS):
        raise UserError(
            f"a vocabulary of {vocab_size} has no room beside {len(SPECIAL_TOKENS)} special tokens."
        )
    tokenizer = _untrained(lowercase)
    words = count_words(texts, tokenizer)
    if not words:
        raise UserError("there is no text to learn a vocabulary from.")
    first, continuing = _alphabet(words, vocab_size - len(SPECIAL_TOKENS))
    _train(tokenizer, words, first, continuing, vocab_size, min_frequency)
    by_id = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return BertTokenizer(
        vocab=dict(by_id), do_lower_case=lowercase, model_max_length=model_max_length
    )


def _untrained(lowercase: bool) -> Tokenizer:
    """Cleans and splits text as BertTokenizer does: what is learnt is what is looked up."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _alphabet(words: Counter[str], room: int) -> tuple[list[str], list[str]]:
    """The most frequent characters that fit, and those of them that also continue words, sorted."""
    counts: Counter[str] = Counter()
    inside: set[str] = set()
    for word, count in words.items():
        for character in word:
            counts[character] += count
        inside.update(word[1:])
    first, continuing = [], []
    for character, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        room -= 1 + (character in inside)
        if room < 0:
            break
        first.append(character)
        if character in inside:
            continuing.append(PREFIX + character)
    return sorted(first), sorted(continuing)


def _train(
    tokenizer: Tokenizer,
    words: Counter[str],
    first: list[str],
    continuing: list[str],
    vocab_size: int,
    min_frequency: int,
) -> None:
    """Let `tokenizers` learn, but leave nothing to the order of its hash tables.

    It numbers continuing characters as it meets them, and these numbers break ties between equally
    frequent pairs: here they are given as special tokens, which come first and in order. Of equally
    rare characters it keeps any: here those to be kept are named. (Its own default keeps 1,000,
    too few for Chinese.)
    """
    from tokenizers import trainers

    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=SPECIAL_TOKENS + continuing,
        initial_alphabet=first,
        limit_alphabet=len(first),
        show_progress=sys.stderr.isatty(),
    )
    tokenizer.train_from_iterator(_repeat(words), trainer)


def _repeat(words: Counter[str]) -> Iterable[str]:
    """Lines that hold every word as often as it was counted; the text was cleaned already."""
    for word, count in words.items():
        for start in range(0, count, 1000):
            yield " ".join([word] * min(1000, count - start))
