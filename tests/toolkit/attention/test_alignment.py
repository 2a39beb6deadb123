"""Slots of dates against the dates they were made from; alignment against two dates by hand."""

from __future__ import annotations

from datetime import date

import pytest
import torch

from toolkit.attention import AttentionMaps, Tokens
from toolkit.attention.alignment import align, pool
from toolkit.attention.slots import slots_of, slots_of_tokens

MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
}


def said(text: str, language: str) -> dict[str, str]:
    return {name: text[low:high] for name, (low, high) in slots_of(text, language).items()}


@pytest.mark.parametrize("language", ["en", "zh", "de", "fr"])
@pytest.mark.parametrize("style", ["full", "long", "medium"])
def test_the_slots_of_every_date(language: str, style: str) -> None:
    dates = pytest.importorskip("babel.dates")
    for month in range(1, 13):
        for day in (date(1907, month, 1), date(2026, month, 23)):
            text = dates.format_date(day, style, locale=language)
            found = said(text, language)
            assert found["year"] == str(day.year), text
            assert int(found["day"]) == day.day
            if found["month"].isdecimal():
                assert int(found["month"]) == month
            else:
                name = MONTHS[language].split()[month - 1]
                assert name.lower().startswith(found["month"].lower().rstrip(".")[:3])
            assert ("weekday" in found) == (style == "full")
            if style == "full":
                assert found["weekday"] == dates.format_date(day, "EEEE", locale=language)


def test_times_and_other_texts() -> None:
    both = "Monday, January 3, 2022 at 4:05:09 PM Coordinated Universal Time"
    assert said(both, "en") == {
        "weekday": "Monday", "month": "January", "day": "3", "year": "2022", "hour": "4",
        "minute": "05", "second": "09",
    }  # fmt: skip
    assert said("2022年1月3日星期一 协调世界时 16:05:09", "zh")["hour"] == "16"
    assert slots_of("27.5 kilometers per hour", "en") == {}


def test_a_token_is_of_the_slot_it_has_characters_of() -> None:
    text = "1月3日星期一 12"
    spans = {"month": (0, 1), "day": (2, 3), "weekday": (4, 7)}
    offsets = [(0, 1), (1, 2), (2, 5), (3, 7), (7, 8), (7, 10), (0, 0)]
    assert slots_of_tokens(text, offsets, spans) == [
        "month", None, None, "weekday", None, None, None,
    ]  # fmt: skip


def tokens(labels: list[str]) -> Tokens:
    return Tokens(tuple(labels), tuple(label == "</s>" for label in labels))


def looking_at(targets: list[list[int]], queries: list[str], keys: list[str]) -> AttentionMaps:
    """One layer; head h looks mostly at key targets[h][q], its other weight is spread."""
    weights = torch.full((1, len(targets), len(queries), len(keys)), 0.4 / len(keys))
    for head, places in enumerate(targets):
        for query, key in enumerate(places):
            weights[0, head, query, key] += 0.6
    return AttentionMaps("cross", weights, tokens(queries), tokens(keys))


def test_two_dates_by_hand() -> None:
    """March 4, 12 -> 12年3月 (the day is not written), and a year alone."""
    source = ["March", "4", "1", "2", "</s>"]
    source_slots = ["month", "day", "year", "year", None]
    output = ["1", "2", "年", "3", "月", "</s>"]
    output_slots = ["year", "year", None, "month", None, None]
    first = looking_at([[2, 2, 0, 0, 0, 0], [3, 1, 0, 4, 0, 0]], output, source)
    second = looking_at([[0, 0], [1, 0]], ["7", "8"], ["7", "8"])
    aligned = [
        align(first, output_slots, source_slots),
        align(second, ["year", "year"], [None, "year"]),
    ]
    assert aligned[0].slots == ["year", "year", "month"]
    assert aligned[0].heads.tolist() == [[[True, True, True], [True, False, False]]]
    found = pool(aligned)
    assert found is not None
    assert (found.tokens, found.texts, found.best) == (5, 2, (0, 0))
    # Head 1: all three of the first, none of the second; head 2: one of each.
    assert [head.value for head in found.heads[0]] == pytest.approx([3 / 5, 2 / 5])
    assert found.chance == pytest.approx((2 / 5 + 2 / 5 + 1 / 5 + 1 / 2 + 1 / 2) / 5)
    assert {name: slot.tokens for name, slot in found.by_slot.items()} == {"year": 4, "month": 1}
    assert [head.value for head in found.by_slot["year"].heads[0]] == pytest.approx([2 / 4, 2 / 4])
    # Head 1 missed both digits of the second year, looking at "7".
    assert found.by_slot["year"].misses[0][0] == [("7", 2)]
    assert found.by_slot["month"].misses[0] == [[], [("</s>", 1)]]
    # Wilson's interval of 3 of 5, from its formula.
    z, share, n = 1.959964, 3 / 5, 5
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    assert found.heads[0][0].interval.low == pytest.approx(middle - half, abs=1e-6)
    assert found.heads[0][0].interval.high == pytest.approx(middle + half, abs=1e-6)


def test_the_mean_of_the_heads_can_be_right_where_no_head_is() -> None:
    """Each head prefers another wrong key, and both have the right one second."""
    weights = torch.tensor([[[[0.0, 0.4, 0.6]], [[0.6, 0.4, 0.0]]]])
    maps = AttentionMaps("cross", weights, tokens(["x"]), tokens(["a", "b", "c"]))
    found = align(maps, ["year"], [None, "year", None])
    assert found.heads.tolist() == [[[False], [False]]]
    assert found.layers.tolist() == [[True]]


def test_nothing_to_align() -> None:
    maps = looking_at([[0]], ["x"], ["y"])
    assert pool([align(maps, ["year"], ["month"]), align(maps, [None], ["month"])]) is None
    with pytest.raises(ValueError, match="2 and 1 slots for 1 queries"):
        align(maps, [None, None], [None])
