"""Phrases of `demo:dates` against what one knows of the three languages."""

from __future__ import annotations

import re

import pytest

from toolkit.demo.dates import NAME, DatePairs, read_dates
from toolkit.errors import UserError

MONTHS = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
]  # fmt: skip
DAYS = dict(
    zip(
        ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
        "一二三四五六日",
        strict=True,
    )
)


@pytest.fixture(scope="module")
def chinese() -> DatePairs:
    return read_dates("zh")


def of_kind(pairs: DatePairs, kind: str) -> list[tuple[str, str]]:
    rows = zip(pairs.sources, pairs.targets, pairs.kinds, strict=True)
    return [(source, target) for source, target, found in rows if found == kind]


def test_size_and_uniqueness(chinese: DatePairs) -> None:
    assert 22_000 < len(chinese.sources) < 26_000
    assert len(set(chinese.sources)) == len(chinese.sources)
    assert len({len(chinese.sources), len(chinese.targets), len(chinese.kinds)}) == 1
    counts = chinese.counts
    left = counts["made"] - counts["repeated"] - counts["ambiguous"]
    assert left == len(chinese.sources)
    spaces = {c for text in chinese.sources + chinese.targets for c in text if c.isspace()}
    assert spaces == {" "}
    assert all(text == text.strip() != "" for text in chinese.sources + chinese.targets)


def test_the_same_every_time(chinese: DatePairs) -> None:
    assert read_dates("zh") == chinese


def test_dates_by_hand(chinese: DatePairs) -> None:
    full = of_kind(chinese, "date-full")
    assert len(full) == 4000
    for source, target in full:
        day, month, date, year = re.fullmatch(r"(\w+), (\w+) (\d+), (\d+)", source).groups()  # type: ignore[union-attr]
        assert target == f"{year}年{MONTHS.index(month) + 1}月{date}日星期{DAYS[day]}"


def test_times_by_hand(chinese: DatePairs) -> None:
    rows = of_kind(chinese, "time-medium")
    assert len(rows) > 1000
    for source, target in rows:
        hour, rest, half = re.fullmatch(r"(\d+)(:\d\d:\d\d) ([AP]M)", source).groups()  # type: ignore[union-attr]
        assert target == f"{int(hour) % 12 + 12 * (half == 'PM'):02}{rest}"


def test_measures_and_numbers_by_hand(chinese: DatePairs) -> None:
    translations = dict(of_kind(chinese, "unit"))
    assert translations["1 minute"] == "1分钟"
    assert any(
        s.endswith(" square meters") and t.endswith("平方米") for s, t in translations.items()
    )
    for source, target in of_kind(chinese, "number"):
        assert source == target  # both write 1,234.5


@pytest.mark.slow
def test_german_and_french() -> None:
    german, french = read_dates("de"), read_dates("fr")
    number = re.compile(r"\d{1,3}(,\d{3})*(\.\d+)?")
    swap = str.maketrans(",.", ".,")
    for source, target in of_kind(german, "number"):
        if number.fullmatch(source):
            assert target == source.translate(swap)
    for source, target in of_kind(french, "number"):
        if number.fullmatch(source):
            assert target == source.translate(swap).replace(".", " ")
    assert dict(of_kind(german, "unit"))["1 minute"] == "1 Minute"
    # "May 3, 1950" is both the long and the medium style, which German tells apart
    assert german.counts["ambiguous"] > 0
    dates = dict(of_kind(german, "date-long") + of_kind(german, "date-medium"))
    assert not any(source.startswith("May ") for source in dates)


def test_other_languages_are_refused() -> None:
    with pytest.raises(UserError, match=f"{NAME} translates into zh, de, fr, not into 'ja'"):
        read_dates("ja")
