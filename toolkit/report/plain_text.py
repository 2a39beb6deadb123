"""Texts that others wrote, before they are laid out: control characters, width, script."""

from __future__ import annotations

import re
import unicodedata

_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_HAN = re.compile("[\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_JAPANESE_OR_KOREAN = re.compile("[\u3040-\u30ff\u3130-\u318f\uac00-\ud7af]")


def visible(text: str) -> str:
    r"""The text with every kind of line end as "\n" and control characters as signs one can see.

    A control character becomes its picture (U+2400 to U+2421, escape is "␛"), what has none, like
    half of a surrogate pair, the replacement character "\ufffd". Tabs stay.
    """
    return without_controls(_LINE_ENDS.sub("\n", text))


def without_controls(text: str) -> str:
    r"""Every control character but tab and line end ("\r" is one) as a sign: what XML may hold."""
    return _CONTROLS.sub(_sign, text.replace("\r\n", "\n").replace("\r", "\n"))


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def one_line(text: str) -> str:
    """The visible text with every run of white space as one space, none at the ends."""
    return " ".join(visible(text).split())


def display_width(text: str) -> int:
    """Columns that a text takes where a Latin letter takes one and a Chinese character two."""
    return sum(
        0
        if unicodedata.combining(character)
        else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )


def is_chinese(text: str) -> bool:
    """Whether at least half of the letters are Chinese and none is Japanese or Korean."""
    if _JAPANESE_OR_KOREAN.search(text):
        return False
    han = len(_HAN.findall(text))
    return han > 0 and 2 * han >= sum(map(str.isalpha, text))


def has_right_to_left(text: str) -> bool:
    """Whether the text holds letters of a script written from right to left, or marks for one."""
    return any(
        unicodedata.bidirectional(character) in ("R", "AL", "RLE", "RLO", "RLI")
        for character in text
    )
