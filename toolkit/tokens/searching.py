"""Where tokens are in a text, for tokenizers that do not say: found by looking for them."""

from __future__ import annotations

from collections.abc import Sequence

Offsets = tuple[int, int]


def search_offsets(text: str, surfaces: Sequence[str | None]) -> list[Offsets | None]:
    """Start and end of every token in `text`, in order; None where the text does not show it.

    A surface is what a token stands for, without the marks of its vocabulary; None: unknown. Case
    does not count. Between a token and the one before it there may be white space only, unless
    tokens that were not found lie between: a guess that goes astray would carry all others along.
    """
    lowered = text.lower() if len(text.lower()) == len(text) else text
    found: list[Offsets | None] = []
    place, gap = 0, False
    for surface in surfaces:
        start = lowered.find(surface.lower(), place) if surface else -1
        if surface is None or start < 0 or (text[place:start].strip() and not gap):
            found.append(None)
            gap = True
            continue
        place, gap = start + len(surface), False
        found.append((start, place))
    return found


def byte_offsets(text: str, pieces: Sequence[bytes]) -> list[Offsets | None]:
    """Likewise where tokens are bytes: the characters that a token's bytes belong to.

    None for all of them where they are not the bytes of the text.
    """
    if b"".join(pieces) != text.encode("utf-8"):
        return [None] * len(pieces)
    owners = [place for place, character in enumerate(text) for _ in character.encode("utf-8")]
    found: list[Offsets | None] = []
    done = 0
    for piece in pieces:
        mine = owners[done : done + len(piece)]
        done += len(piece)
        found.append((mine[0], mine[-1] + 1) if mine else None)
    return found
