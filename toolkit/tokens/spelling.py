"""Tokens as a person can read them: bytes as the text they are, or as their numbers."""

from __future__ import annotations

import re
from functools import cache

from toolkit.data.inspection.visible import visible
from toolkit.tokens.kinds import Spelling

_FALLBACK = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def readable(token: str, spelling: Spelling) -> str:
    """A token of the vocabulary for the eye: "Ġun" -> "␣un", "ä»" -> "⟨E4 BB⟩".

    Bytes that are no whole character, because it was split, are written as numbers (hexadecimal).
    """
    content = bytes_of(token, spelling)
    return visible(token) if content is None else _decoded(content)


def is_split(token: str, spelling: Spelling) -> bool:
    """True for a token that holds a part of a character, not only whole ones."""
    content = bytes_of(token, spelling)
    return content is not None and "\ufffd" in content.decode("utf-8", errors="replace")


def bytes_of(token: str, spelling: Spelling) -> bytes | None:
    """The bytes a token stands for; None for one that is text (or a special token)."""
    if spelling != "plain":
        signs = byte_signs() if spelling == "bytes as signs" else _characters()
        if all(sign in signs for sign in token):
            return bytes(signs[sign] for sign in token)
    if fallback := _FALLBACK.fullmatch(token):
        return bytes([int(fallback[1], 16)])
    return None


@cache
def byte_signs() -> dict[str, int]:
    """GPT-2's sign of every byte (`bytes_to_unicode` of its `encoder.py`), the other way round.

    Bytes that print are themselves; the others are the characters from U+0100, in order.
    """
    printing = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printing]
    signs = {chr(byte): byte for byte in printing}
    return signs | {chr(0x100 + place): byte for place, byte in enumerate(others)}


@cache
def _characters() -> dict[str, int]:
    return {chr(byte): byte for byte in range(256)}


def _decoded(content: bytes) -> str:
    """Whole characters as they are, the bytes of others in brackets."""
    shown, rest = [], content
    while rest:
        try:
            shown.append(visible(rest.decode("utf-8")))
            break
        except UnicodeDecodeError as error:
            if error.start:
                shown.append(visible(rest[: error.start].decode("utf-8")))
            shown.append(f"⟨{rest[error.start : error.end].hex(' ').upper()}⟩")
            rest = rest[error.end :]
    return "".join(shown).replace("⟩⟨", " ")
