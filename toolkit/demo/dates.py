"""`demo:dates`: phrases with one right translation, from the Unicode CLDR through Babel.

Dates, times, both together, measures and numbers, in English and as Chinese, German or French have
them. The styles are full, long and medium: short English dates (9/3/26) do not tell the century.
No random numbers: the same Babel gives the same pairs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from toolkit.errors import UserError

NAME = "demo:dates"
SOURCE = "en"
TARGETS = ("zh", "de", "fr")
HELD_OUT_SIZES = {"validation": 1000, "test": 2000}

STYLES = ("full", "long", "medium")
FIRST, LAST = datetime(1900, 1, 1), datetime(2100, 1, 1)
SECONDS = int((LAST - FIRST).total_seconds())
# A step through two centuries that has no divisor in common with their seconds visits all of them,
# spread over years, days and hours.
STEP = 1_234_567_891

UNITS = (
    "length-kilometer", "length-meter", "length-centimeter", "mass-kilogram", "mass-gram",
    "duration-hour", "duration-minute", "duration-second", "duration-day", "duration-week",
    "duration-month", "duration-year", "digital-gigabyte", "digital-megabyte", "volume-liter",
    "temperature-celsius", "speed-kilometer-per-hour", "area-square-meter", "power-watt",
    "energy-joule", "frequency-hertz",
)  # fmt: skip
CURRENCIES = ("USD", "EUR", "CNY", "JPY", "GBP")


@dataclass(frozen=True)
class DatePairs:
    """Parallel phrases, no source twice; `kinds` says of each what it is ("date-full", "unit")."""

    sources: list[str]
    targets: list[str]
    kinds: list[str]
    counts: dict[str, Any]  # what was made and left out, and by which Babel


def read_dates(target: str) -> DatePairs:
    """Some 23,000 English phrases and what they are in `target`, one of `TARGETS`.

    Raises:
        UserError: another language, or Babel is not installed.
    """
    if target not in TARGETS:
        raise UserError(f"{NAME} translates into {', '.join(TARGETS)}, not into {target!r}.")
    if importlib.util.find_spec("babel") is None:
        raise UserError(
            f"{NAME} needs the package Babel, which is not installed: "
            "pip install 'scratch-models-toolkit[demo]'"
        )
    import babel

    found: dict[str, tuple[str, str]] = {}
    made = 0
    ambiguous: set[str] = set()
    phrases = zip(_phrases(SOURCE), _phrases(target), strict=True)
    for (kind, source), (_, translation) in phrases:
        made += 1
        if found.setdefault(source, (translation, kind))[0] != translation:
            ambiguous.add(source)
    for source in ambiguous:
        del found[source]
    counts = {
        "made": made,
        "repeated": made - len(found) - len(ambiguous),
        "ambiguous": len(ambiguous),
        "babel": babel.__version__,
    }
    targets, kinds = zip(*found.values(), strict=True)
    return DatePairs(list(found), list(targets), list(kinds), counts)


def plain_spaces(text: str) -> str:
    """CLDR's narrow and ordinary no-break spaces as what a keyboard types."""
    return text.replace("\u202f", " ").replace("\u00a0", " ")


def _phrases(locale: str) -> Iterator[tuple[str, str]]:
    for kind, text in (*_moments(locale), *_quantities(locale)):
        yield kind, plain_spaces(text)


def _moments(locale: str) -> Iterator[tuple[str, str]]:
    from babel.dates import format_date, format_datetime, format_time

    moments = [FIRST + timedelta(seconds=i * STEP % SECONDS) for i in range(7000)]
    for style in STYLES:
        for moment in moments[:4000]:
            yield f"date-{style}", format_date(moment, style, locale=locale)
        for moment in moments[4000:5300]:
            yield f"time-{style}", format_time(moment, style, locale=locale)
        for moment in moments[5300:]:
            yield f"datetime-{style}", format_datetime(moment, style, locale=locale)


def _quantities(locale: str) -> Iterator[tuple[str, str]]:
    from babel.numbers import format_currency, format_decimal, format_percent
    from babel.units import format_unit

    numbers = [i * 7919 % 9999 / (10 if i % 3 == 0 else 1) for i in range(1, 1001)]
    for place, unit in enumerate(UNITS):
        for number in (1, *numbers[place * 7 : place * 7 + 80]):
            yield "unit", format_unit(number, unit, "long", locale=locale)
    for place, currency in enumerate(CURRENCIES):
        for number in numbers[place * 100 : place * 100 + 100]:
            yield "unit", format_currency(number, currency, format_type="name", locale=locale)
    for number in numbers:
        yield "number", format_decimal(round(number * 37.31, 2), locale=locale)
    for percent in range(1, 400):
        yield "number", format_percent(percent / 100, locale=locale)
