"""Words and how often they stand in a text: what vocabularies are learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def count_words(texts: Iterable[str], tokenizer: Tokenizer) -> Counter[str]:
    """Words as a tokenizer cleans and splits them, and their numbers.

    Args:
        tokenizer: with a normalizer and a pre-tokenizer; its vocabulary is not looked at.
    """
    words: Counter[str] = Counter()
    for text in texts:
        clean = tokenizer.normalizer.normalize_str(text)
        words.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(clean))
    return words
