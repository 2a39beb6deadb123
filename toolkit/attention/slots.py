"""The slots of a date in English, Chinese, German and French: which characters say the year, ….

Written for the phrases of `demo:dates`; of any other text there are no slots.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Span = tuple[int, int]
SLOTS = ("year", "month", "day", "weekday", "hour", "minute", "second")

_WORD = r"[^\W\d_]+"
_DATES = {
    "en": rf"(?:(?P<weekday>{_WORD}), )?(?P<month>{_WORD}) (?P<day>\d{{1,2}}), (?P<year>\d{{4}})",
    "zh": r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?P<day>\d{1,2})日(?P<weekday>星期.)?",
    "de": rf"(?:(?P<weekday>{_WORD}), )?(?P<day>\d{{1,2}})\. ?(?P<month>{_WORD}|\d{{1,2}})\.? ?"
    r"(?P<year>\d{4})",
    "fr": rf"(?:(?P<weekday>{_WORD}) )?(?P<day>\d{{1,2}})(?:er)? (?P<month>{_WORD}\.?) "
    r"(?P<year>\d{4})",
}
_TIME = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)")
LANGUAGES = tuple(_DATES)


def slots_of(text: str, language: str) -> dict[str, Span]:
    """Start and end of every slot that a text has; nothing where it is no date and no time.

    Args:
        language: one of `LANGUAGES`.
    """
    spans: dict[str, Span] = {}
    for pattern in (re.compile(_DATES[language]), _TIME):
        found = pattern.search(text)
        if found is not None:
            spans |= {name: found.span(name) for name, said in found.groupdict().items() if said}
    return spans


def slots_of_tokens(text: str, offsets: Sequence[Span], spans: dict[str, Span]) -> list[str | None]:
    """The slot of every token: the one it has characters of, spaces apart; None: of none, of two.

    Tokens may reach beyond a slot: 日星期 is of the weekday.
    """
    slots: list[str | None] = []
    for start, end in offsets:
        inked = [place for place in range(start, end) if not text[place].isspace()]
        touched = [
            name
            for name, (low, high) in spans.items()
            if any(low <= place < high for place in inked)
        ]
        slots.append(touched[0] if len(touched) == 1 else None)
    return slots
