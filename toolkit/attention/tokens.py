"""Tokens as a reader wants to see them: spaces marked, characters that were split told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.tokens.spelling import bytes_of

SPACE = "␣"
_LONGEST_CHARACTER = 4  # bytes in UTF-8


@dataclass(frozen=True)
class Tokens:
    """The tokens of one input, in order.

    Args:
        labels: as they are shown.
        special: which of them stand for no part of the text ([CLS], </s>); an unknown or masked
            word is part of it.
    """

    labels: tuple[str, ...]
    special: tuple[bool, ...]

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.special):
            raise ValueError(f"{len(self.labels)} labels, {len(self.special)} marks")

    def __len__(self) -> int:
        return len(self.labels)


def tokens_of(ids: Sequence[int], tokenizer: Any) -> Tokens:
    """Labels of token ids.

    A space that belongs to a token is shown as ␣ (`Ġ` of GPT-2 and `▁` of SentencePiece), the `##`
    of WordPiece stays. Where a vocabulary of bytes splits a character, its tokens are called "酒
    1/3", "酒 2/3", "酒 3/3"; bytes that are no character are written <0xE5>.

    Args:
        ids: of one text, special tokens among them.
        tokenizer: of HuggingFace's kind.
    """
    names = [str(name) for name in tokenizer.convert_ids_to_tokens(list(ids))]
    hidden = {tokenizer.unk_token_id, tokenizer.mask_token_id} - {
        tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id,
    }  # fmt: skip
    structural = set(tokenizer.all_special_ids) - hidden
    known = set(tokenizer.all_special_ids)
    spellings = [
        None if number in known else _spelling(name, _has_bytes(tokenizer))
        for number, name in zip(ids, names, strict=True)
    ]
    labels = _labels(names, spellings)
    return Tokens(tuple(labels), tuple(number in structural for number in ids))


def _has_bytes(tokenizer: Any) -> bool:
    """Whether characters of the tokens stand for bytes, as in GPT-2's vocabulary."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return hasattr(tokenizer, "byte_decoder")
    return "ByteLevel" in repr(backend.decoder) or "ByteLevel" in type(backend.decoder).__name__


def _spelling(name: str, has_bytes: bool) -> bytes:
    """What a token stands for, in UTF-8, which may end within a character."""
    content = bytes_of(name, "bytes as signs" if has_bytes else "plain")
    if content is not None:
        return content
    return name.replace("▁", " ").encode("utf-8", "replace")


def _labels(names: Sequence[str], spellings: Sequence[bytes | None]) -> list[str]:
    labels: list[str] = []
    while len(labels) < len(names):
        place = len(labels)
        spelling = spellings[place]
        if spelling is None:
            labels.append(names[place])
            continue
        parts, text = _whole_characters(spellings[place:])
        if text is None:
            labels.append("".join(f"<0x{byte:02X}>" for byte in spelling))
        elif parts == 1:
            labels.append(_shown(text))
        else:
            labels += [f"{_shown(text)} {part}/{parts}" for part in range(1, parts + 1)]
    return labels


def _whole_characters(spellings: Sequence[bytes | None]) -> tuple[int, str | None]:
    """How many tokens it takes until a character ends, and their text; None: none ends."""
    joined = b""
    # A token may end a character and begin another: every part holds a byte of one at least.
    for parts, spelling in enumerate(spellings[: 4 * _LONGEST_CHARACTER], start=1):
        if spelling is None:
            break
        joined += spelling
        try:
            return parts, joined.decode("utf-8")
        except UnicodeDecodeError:
            continue
    return 1, None


def _shown(text: str) -> str:
    """A text of which every space is seen."""
    return text.replace(" ", SPACE).replace("\n", "⏎").replace("\t", "⇥") or "∅"
