"""Control characters, widths and scripts of texts that others wrote."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.report.plain_text import (
    display_width,
    has_right_to_left,
    is_chinese,
    one_line,
    visible,
    without_controls,
)


def test_control_characters_become_signs() -> None:
    assert visible("a\x00b\x1b[31m\x07\x7f\x9b") == "a␀b␛[31m␇␡\ufffd"
    assert visible("half \ud83d of a pair") == "half \ufffd of a pair"
    assert visible("tab\tstays") == "tab\tstays"


def test_every_line_end_is_one() -> None:
    assert visible("a\r\nb\rc\u2028d\u2029e\x85f\x0bg\x0ch\ni") == "a\nb\nc\nd\ne\nf\ng\nh\ni"


@given(st.text(st.characters(codec=None)))
def test_what_is_visible_can_be_written_and_has_no_control_but_line_ends(text: str) -> None:
    for clean in (visible, without_controls):
        clean(text).encode("utf-8")
        assert {c for c in clean(text) if unicodedata.category(c) == "Cc"} <= {"\n", "\t"}
        assert clean(clean(text)) == clean(text)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])))
def test_other_characters_stay(text: str) -> None:
    assert visible(text) == text


def test_one_line() -> None:
    assert one_line("  a \n\t b\u3000c\xa0 ") == "a b c"


def test_display_width() -> None:
    assert display_width("BERT") == 4
    assert display_width("中文，a") == 7
    assert display_width("e\u0301") == 1  # an accent stands on its letter


@pytest.mark.parametrize(
    ("text", "chinese"),
    [
        ("酒店位置很好", True),
        ("中文 OK", True),
        ("Chinese BERT, 冻结", False),
        ("日本語のテキスト", False),
        ("한국어", False),
        ("87.9%", False),
        ("", False),
    ],
)
def test_is_chinese(text: str, chinese: bool) -> None:
    assert is_chinese(text) == chinese


def test_has_right_to_left() -> None:
    assert has_right_to_left("abc مرحبا")
    assert has_right_to_left("שלום")
    assert has_right_to_left("\u202ereversed")
    assert not has_right_to_left("中文 abc 1")
