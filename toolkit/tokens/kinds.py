"""What kind a tokenizer is, read from the tokenizer itself, not from its model's name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Spelling = Literal["bytes as signs", "bytes as characters", "plain"]
"""How a vocabulary writes its tokens: GPT-2's signs for bytes, one character a byte, or text."""


@dataclass(frozen=True)
class Kind:
    """A way to cut texts, with the sentence that explains it."""

    name: str
    explanation: str
    spelling: Spelling = "plain"


WORDPIECE = Kind(
    "WordPiece",
    "splits at spaces and punctuation, then takes the longest piece of its vocabulary, again and "
    "again; {prefix} continues a word; a word that cannot be spelled is unknown as a whole",
)
BYTE_BPE = Kind(
    "byte-level BPE",
    "writes the text as UTF-8 bytes and joins neighbours in the order it has learnt; every byte is "
    "a token, so nothing is unknown; a space belongs to the word behind it",
    "bytes as signs",
)
FALLBACK_BPE = Kind(
    "BPE with bytes",
    "joins neighbouring characters in the order it has learnt; a character that is not in its "
    "vocabulary becomes its UTF-8 bytes; ▁ is a space",
)
CHARACTER_BPE = Kind(
    "BPE",
    "joins neighbouring characters in the order it has learnt; a character that is not in its "
    "vocabulary is unknown",
)
UNIGRAM = Kind(
    "SentencePiece Unigram",
    "of all ways to cut a text takes the most probable one; ▁ is a space; characters that are not "
    "in its vocabulary are unknown",
)
WORDS = Kind("whole words", "looks up whole words; a word that it does not have is unknown")
RAW_BYTES = Kind("bytes", "every UTF-8 byte is a token; nothing is joined", "bytes as characters")
CHARACTERS = Kind("characters", "every character is a token; nothing is joined")

_OF_CLASSES = {"ByT5Tokenizer": RAW_BYTES, "CanineTokenizer": CHARACTERS}


def kind_of(tokenizer: Any) -> Kind:
    """The kind of a HuggingFace tokenizer, by its parts where it has some, else by its class."""
    if not tokenizer.is_fast:
        name = type(tokenizer).__name__
        return _OF_CLASSES.get(name) or Kind(
            name, "cuts in Python code of its own, which does not tell its kind"
        )
    backend = tokenizer.backend_tokenizer
    model = backend.model
    match type(model).__name__:
        case "WordPiece":
            prefix = model.continuing_subword_prefix
            return Kind(WORDPIECE.name, WORDPIECE.explanation.format(prefix=prefix))
        case "Unigram":
            return UNIGRAM
        case "WordLevel":
            return WORDS
    parts = {part["type"] for part in parts_of(backend)}
    if "ByteLevel" in parts:
        return BYTE_BPE
    return FALLBACK_BPE if model.byte_fallback else CHARACTER_BPE


def lowercases(tokenizer: Any) -> bool:
    """True where upper case is lost before the text is cut."""
    if not tokenizer.is_fast:
        return bool(getattr(tokenizer, "do_lower_case", False))
    return any(
        part["type"] == "Lowercase" or bool(part.get("lowercase"))
        for part in parts_of(tokenizer.backend_tokenizer)
    )


def parts_of(backend: Any) -> Iterator[dict[str, Any]]:
    """Normalizers, pre-tokenizers and decoders of a `tokenizers.Tokenizer`, one by one."""
    for name in ("normalizer", "pre_tokenizer", "decoder"):
        part = getattr(backend, name)
        if part is not None:
            yield from _flat(json.loads(part.__getstate__()))


def _flat(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    inner = [value for value in part.values() if isinstance(value, list)]
    if part["type"] != "Sequence":
        yield part
        return
    for members in inner:
        for member in members:
            yield from _flat(member)
