"""How tags mark entities: the schemes in use, told apart and read as spans, and written as BIO.

In all of them a tag is O or a prefix and a type (`B-PER`). They differ in the prefixes of the
first, the middle and the last token of an entity, and of entities of one token:

    bio    B I I     B      CoNLL-2002 and after; also called IOB2
    iob1   I I I     I      CoNLL-2003's files; B only between entities of one type that touch
    bioes  B I E     S
    bmes   B M E     S      usual for Chinese
    bilou  B I L     U
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

OUTSIDE = "O"
PREFIXES = {"bio": "BI", "iob1": "BI", "bioes": "BIES", "bmes": "BMES", "bilou": "BILU"}
_INSIDE, _LAST, _SINGLE = frozenset("IM"), frozenset("EL"), frozenset("SU")
_TAG = re.compile(r"([BIMESLU])[-_](.+)")


class Span(NamedTuple):
    """An entity: tokens `start` to `stop` (exclusive) and its type."""

    start: int
    stop: int
    kind: str


class Problem(NamedTuple):
    """What is wrong at a token of a sequence of tags."""

    token: int
    what: str


def split_tag(tag: str) -> tuple[str, str]:
    """`B-PER.NOM -> B, PER.NOM`; ("", "") for O.

    Raises:
        ValueError: neither O nor a known prefix and a type.
    """
    if tag == OUTSIDE:
        return "", ""
    found = _TAG.fullmatch(tag)
    if found is None:
        raise ValueError(
            f"{tag!r} is no tag: expected O, or B, I, M, E, S, L or U with a type, such as B-PER"
        )
    return found[1], found[2]


def detect_scheme(sentences: Iterable[Sequence[str]]) -> str:
    """The scheme that tags are written in, a key of `PREFIXES`.

    B and I alone may be bio or iob1: it is iob1 where entities begin with I and no B stands but
    right after an entity of its type.

    Raises:
        ValueError: no entity at all, or prefixes that no scheme has together.
    """
    used: set[str] = set()
    begun_by_inside = begun_by_begin = False
    for tags in sentences:
        before = ""
        for tag in tags:
            prefix, kind = split_tag(tag)
            used |= {prefix} - {""}
            begun_by_inside |= prefix == "I" and before == ""
            begun_by_begin |= prefix == "B" and before != kind
            before = kind
    if not used:
        raise ValueError("every tag is O: there is no entity to learn")
    if used <= {"B", "I"}:
        return "iob1" if begun_by_inside and not begun_by_begin else "bio"
    for scheme in ("bioes", "bmes", "bilou"):
        if used <= set(PREFIXES[scheme]):
            return scheme
    raise ValueError(
        f"no scheme has the prefixes {', '.join(sorted(used))} together; known are "
        + ", ".join(f"{name} ({' '.join(letters)})" for name, letters in PREFIXES.items())
    )


def scheme_of_labels(labels: Sequence[str]) -> str | None:
    """The scheme of a model's labels; None where they have no prefixes (parts of speech)."""
    found = [_TAG.fullmatch(label) for label in labels if label != OUTSIDE]
    used = {match[1] for match in found if match is not None}
    if not used or None in found:
        return None
    if used <= {"B", "I"}:
        return "bio" if "B" in used else "iob1"
    return next((s for s in ("bioes", "bmes", "bilou") if used <= set(PREFIXES[s])), "bio")


def read_spans(tags: Sequence[str], scheme: str = "bio") -> tuple[list[Span], list[Problem]]:
    """Entities of a sentence, and where its tags break the rules of the scheme.

    What breaks them is read as CoNLL's evaluation does: a tag that continues nothing begins an
    entity, and an entity ends before a tag that does not continue it.
    """
    spans: list[Span] = []
    problems: list[Problem] = []
    ends_are_marked = scheme in ("bioes", "bmes", "bilou")
    start, open_kind = -1, ""  # of the entity that is being read; "" for none
    for token, tag in enumerate([*tags, OUTSIDE]):
        prefix, kind = split_tag(tag)
        continuing = prefix in _INSIDE or prefix in _LAST
        if open_kind and not (continuing and kind == open_kind):
            if ends_are_marked:
                problems.append(Problem(token - 1, f"{tags[token - 1]} ends an entity"))
            spans.append(Span(start, token, open_kind))
            open_kind = ""
        if kind and not open_kind:
            if continuing and scheme != "iob1":
                problems.append(Problem(token, f"{tag} continues nothing"))
            start, open_kind = token, kind
        if prefix in _LAST or prefix in _SINGLE:
            spans.append(Span(start, token + 1, open_kind))
            open_kind = ""
    return spans, problems


def bio_tags(spans: Iterable[Span], length: int) -> list[str]:
    """The tags of a sentence of `length` tokens, in the scheme bio."""
    tags = [OUTSIDE] * length
    for start, stop, kind in spans:
        tags[start:stop] = [f"B-{kind}"] + [f"I-{kind}"] * (stop - start - 1)
    return tags
