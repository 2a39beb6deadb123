"""Texts for the eye: what cannot be seen is written out, what is long is cut."""

from __future__ import annotations

_SIGNS = {"\n": "⏎", "\r": "␍", "\t": "⇥"}
_END_SPACE = "␣"


def visible(text: str, most: int | None = None) -> str:
    """The text in one line, every character of it to be seen.

    Line ends, carriage returns and tabs become ⏎ ␍ ⇥, spaces at either end and behind another space
    ␣; other blanks (U+3000), control characters, zero width and private-use ones their code in
    brackets.

    Args:
        most: characters of the text to show; how many more there are is said.
    """
    inner = text.strip(" ")
    start = len(text) - len(text.lstrip(" "))
    shown = []
    for place, character in enumerate(text if most is None else text[:most]):
        if character == " ":
            at_end = not inner or place < start or place >= start + len(inner)
            doubled = place > 0 and text[place - 1] == " "
            shown.append(_END_SPACE if at_end or doubled else " ")
        else:
            shown.append(_sign(character))
    more = 0 if most is None else len(text) - most
    return "".join(shown) + (f"… (+{more:,} characters)" if more > 0 else "")


def _sign(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    return character if character.isprintable() else f"⟨U+{ord(character):04X}⟩"
