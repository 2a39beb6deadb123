"""One text as one tokenizer cuts it."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from toolkit.errors import UserError, first_line
from toolkit.tokens.kinds import Kind, kind_of, lowercases
from toolkit.tokens.searching import Offsets, byte_offsets, search_offsets
from toolkit.tokens.spelling import bytes_of, is_split, readable

Role = Literal["text", "special", "unknown"]
OffsetSource = Literal["the tokenizer", "searching the text"]


@dataclass(frozen=True)
class Token:
    """A token and what it stands for; `start` and `end` count characters of the text."""

    token: str  # as the vocabulary has it
    shown: str  # to be read
    id: int
    role: Role
    start: int | None
    end: int | None
    text: str | None  # of the text, from start to end; None where that is not known
    split: bool  # holds a part of a character


@dataclass(frozen=True)
class Cut:
    """The tokens of a text, special ones included, and what decoding makes of them."""

    text: str
    tokens: list[Token]
    offsets_by: OffsetSource
    decoded: str
    changes: list[str] = field(default_factory=list)
    """What `decoded` has lost of the text, in words; nothing where they are equal."""

    @property
    def given_back(self) -> bool:
        """True where decoding gives the text back, character for character."""
        return self.decoded == self.text

    @property
    def of_text(self) -> int:
        """Tokens without those that the tokenizer puts around a text."""
        return sum(token.role != "special" for token in self.tokens)

    @property
    def unknown(self) -> list[Token]:
        """Tokens that say no more than that something was there."""
        return [token for token in self.tokens if token.role == "unknown"]

    @property
    def per_character(self) -> float | None:
        """Tokens for each character that is no white space."""
        characters = len("".join(self.text.split()))
        return self.of_text / characters if characters else None

    @property
    def per_word(self) -> float | None:
        """Tokens for each word; None where words are not written apart (`count_words`)."""
        words = count_words(self.text)
        return self.of_text / words if words else None


class Cutter:
    """A tokenizer and what it is.

    Args:
        name: as the user named it.
        tokenizer: HuggingFace's.
    """

    def __init__(self, name: str, tokenizer: Any) -> None:
        self.name, self.tokenizer = name, tokenizer
        self.kind: Kind = kind_of(tokenizer)
        self.lowercases = lowercases(tokenizer)
        self.size = len(tokenizer)
        limit = tokenizer.model_max_length
        self.limit = int(limit) if limit < _NO_LIMIT else None

    def cut(self, text: str) -> Cut:
        """Cut a text as the model would get it, special tokens included, at full length.

        Raises:
            UserError: the text is empty, or is no Unicode.
        """
        check_text(text)
        ids, special = self._encode(text)
        vocabulary = self.tokenizer.convert_ids_to_tokens(ids)
        unknown = [
            number == self.tokenizer.unk_token_id and not mine
            for number, mine in zip(ids, special, strict=True)
        ]
        if self.tokenizer.is_fast:
            source: OffsetSource = "the tokenizer"
            places = self._own_offsets(text, special)
        else:
            source = "searching the text"
            places = self._searched(text, vocabulary, special, unknown)
        tokens = [
            self._token(text, *each)
            for each in zip(vocabulary, ids, special, unknown, places, strict=True)
        ]
        decoded = self.tokenizer.decode(ids, skip_special_tokens=True)
        return Cut(text, tokens, source, decoded, changes(text, decoded, any(unknown)))

    def _encode(self, text: str) -> tuple[list[int], list[bool]]:
        """Ids, and which of them the tokenizer has put around the text."""
        try:
            encoded = self.tokenizer(text, return_special_tokens_mask=True, verbose=False)
        except Exception as error:  # without an unknown token `tokenizers` raises Exception itself
            raise UserError(f"{self.name} cannot cut {text[:40]!r}: {first_line(error)}") from error
        return list(encoded["input_ids"]), [bool(mark) for mark in encoded["special_tokens_mask"]]

    def _own_offsets(self, text: str, special: Sequence[bool]) -> list[Offsets | None]:
        encoded = self.tokenizer(text, return_offsets_mapping=True, verbose=False)
        pairs = zip(encoded["offset_mapping"], special, strict=True)
        return [None if mine else (start, end) for (start, end), mine in pairs]

    def _searched(
        self, text: str, tokens: Sequence[str], special: Sequence[bool], unknown: Sequence[bool]
    ) -> list[Offsets | None]:
        """Places of the tokens of the text; of unknown ones what their neighbours leave over."""
        inner = [place for place, mine in enumerate(special) if not mine]
        contents = [bytes_of(tokens[place], self.kind.spelling) for place in inner]
        whole = [content for content in contents if content is not None]
        if whole and len(whole) == len(contents):
            found = byte_offsets(text, whole)
        else:
            found = search_offsets(text, [self._surface(tokens[p], unknown[p]) for p in inner])
            found = fill_gaps(text, found, [unknown[place] for place in inner])
        places: list[Offsets | None] = [None] * len(tokens)
        for place, offsets in zip(inner, found, strict=True):
            places[place] = offsets
        return places

    def _surface(self, token: str, unknown: bool) -> str | None:
        if unknown:
            return None
        bare = token.removeprefix("##").removesuffix("@@").removesuffix("</w>").strip("▁")
        return bare or None

    def _token(
        self,
        text: str,
        token: str,
        number: int,
        special: bool,
        unknown: bool,
        place: Offsets | None,
    ) -> Token:
        role: Role = "special" if special else "unknown" if unknown else "text"
        spelling = "plain" if role != "text" else self.kind.spelling
        if place is not None and not token.strip("▁") and text[slice(*place)].strip():
            place = (place[0], place[0])  # `tokenizers` gives a space put before a word its letter
        start, end = place or (None, None)
        return Token(
            token=token,
            shown=readable(token, spelling),
            id=number,
            role=role,
            start=start,
            end=end,
            text=None if place is None else text[place[0] : place[1]],
            split=is_split(token, spelling),
        )


_NO_LIMIT = 1_000_000  # transformers writes "no limit known" as 1e30
_UNSPACED = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0eff]"
)


def check_text(text: str) -> None:
    """Refuse what is no text.

    Raises:
        UserError: nothing at all, or bytes that are no UTF-8.
    """
    if not text:
        raise UserError(
            "the text is empty: there is nothing to cut. Give one, as in "
            'toolkit tokens demo:chinese-bert "他把书送给了她。"'
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(
            f"the text is no UTF-8: character {error.start + 1} cannot be read. Save it as UTF-8."
        ) from error


def count_words(text: str) -> int | None:
    """Words of a text that writes them apart; None where Chinese, Japanese or Thai is in it."""
    return None if _UNSPACED.search(text) else len(text.split())


def fill_gaps(
    text: str, found: Sequence[Offsets | None], unknown: Sequence[bool]
) -> list[Offsets | None]:
    """Give an unknown token that stands alone between two found ones what lies between them."""
    filled = list(found)
    for place, lost in enumerate(unknown):
        before = found[place - 1] if place else (0, 0)
        after = found[place + 1] if place + 1 < len(found) else (len(text), len(text))
        if lost and before is not None and after is not None:
            between = text[before[1] : after[0]]
            start = before[1] + len(between) - len(between.lstrip())
            filled[place] = (start, start + len(between.strip()))
    return filled


def changes(text: str, decoded: str, unknown: bool) -> list[str]:
    """What makes the decoded text another one, in words: the fewest changes that explain it."""
    if decoded == text:
        return []
    if unknown:
        return ["what the unknown tokens stood for is lost"]
    for count in range(1, len(_CHANGES) + 1):
        for names in itertools.combinations(_CHANGES, count):
            sides = []
            for side in (text, decoded):
                for name in names:
                    side = _CHANGES[name](side)
                sides.append(side)
            if sides[0] == sides[1]:
                return list(names)
    return ["other characters came back"]


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _without_accents(text: str) -> str:
    parts = unicodedata.normalize("NFD", text)
    return "".join(part for part in parts if unicodedata.category(part) != "Mn")


def _compatible(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


_CHANGES: dict[str, Callable[[str], str]] = {
    "white space differs": _without_spaces,
    "upper case is lost": str.lower,
    "characters have become their compatible forms (NFKC)": _compatible,
    "accents are lost": _without_accents,
}
