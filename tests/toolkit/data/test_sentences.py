"""Sentence boundaries, Chinese and Western."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.sentences import split_clauses, split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("今天很好。明天呢？", ["今天很好。", "明天呢？"]),
        ("太差了！！！再也不来……真的", ["太差了！！！", "再也不来……", "真的"]),
        ("他说：“好的。”然后走了。", ["他说：“好的。”", "然后走了。"]),
        ("（很近！）步行五分钟；打车一分钟", ["（很近！）", "步行五分钟；", "打车一分钟"]),
        ("价格3.5元，见example.com。", ["价格3.5元，见example.com。"]),
        ("It is ok. Really? Yes", ["It is ok.", "Really?", "Yes"]),
        ("第一行\n第二行\r\n\n第三行", ["第一行", "第二行", "第三行"]),
        ("", []),
        ("。", ["。"]),
        ("  \n ", []),
    ],
)
def test_sentences(text, sentences):
    assert split_sentences(text) == sentences


def test_clauses_end_at_commas_but_not_within_numbers():
    assert split_clauses("价格1,299元，太贵、不值") == ["价格1,299元，", "太贵、", "不值"]


@given(st.text(alphabet="好a1。！？；…”.,，\n ", max_size=40))
def test_nothing_but_white_space_is_lost(text):
    whole = re.sub(r"\s", "", text)
    assert re.sub(r"\s", "", "".join(split_sentences(text))) == whole
    assert re.sub(r"\s", "", "".join(split_clauses(text))) == whole
