"""One vocabulary for two languages: exact round trips, any order, nothing unknown."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from toolkit.data.joint_bpe import BYTES, SPECIAL_TOKENS, train_joint_bpe
from toolkit.errors import UserError

TEXTS = [
    *(f"The cat number {n} sat on {n * 7} mats, didn't it?" for n in range(40)),
    *(f"第{n}只猫坐在{n * 7}张垫子上，是吗？" for n in range(40)),
]
TOKENIZER = train_joint_bpe(TEXTS, 400)


def decoded(text: str) -> str:
    ids = TOKENIZER(text)["input_ids"]
    assert ids[-1] == TOKENIZER.eos_token_id
    assert TOKENIZER.unk_token_id not in ids
    return str(TOKENIZER.decode(ids, skip_special_tokens=True))


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2581")))
def test_any_text_comes_back(text: str) -> None:
    assert decoded(text) == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        *TEXTS[::20],
        "Zwei  Äpfel 😀",
        "a\tb",
        "</s> is <pad>, <0x41> too",
        "1,234.5 %",
        "全角ＡＢＣ",
    ],
)
def test_texts_come_back(text: str) -> None:
    assert decoded(text) == text


def test_digits_and_punctuation_stand_alone_and_words_are_joined_across_neither() -> None:
    assert TOKENIZER.tokenize("The cat, 217 mats") == [
        "▁The", "▁cat", ",", "▁", "2", "1", "7", "▁mats",
    ]  # fmt: skip
    assert "张垫子上" in TOKENIZER.tokenize("坐在7张垫子上，是吗？")


def test_ids_are_special_tokens_bytes_and_pieces() -> None:
    vocabulary = TOKENIZER.get_vocab()
    assert len(TOKENIZER) == len(vocabulary) <= 400
    assert [vocabulary[token] for token in SPECIAL_TOKENS] == [0, 1, 2]
    assert [vocabulary[byte] for byte in BYTES] == list(range(3, 259))
    assert sorted(vocabulary.values()) == list(range(len(vocabulary)))
    assert TOKENIZER.tokenize("猫鼠") == ["▁", "猫", "<0xE9>", "<0xBC>", "<0xA0>"]


def test_the_order_of_the_texts_does_not_matter() -> None:
    shuffled = list(TEXTS)
    random.Random(3).shuffle(shuffled)
    assert train_joint_bpe(shuffled, 400).get_vocab() == TOKENIZER.get_vocab()
    few = train_joint_bpe(TEXTS, 275)  # not even every character fits
    assert len(few) <= 275
    assert train_joint_bpe(shuffled, 275).get_vocab() == few.get_vocab()


def test_lower_case(tmp_path: Path) -> None:
    lower = train_joint_bpe(["Ein Haus", "EIN HAUS", "ein Ärger"], 300, lowercase=True)
    assert lower.decode(lower("EIN Ärger")["input_ids"], skip_special_tokens=True) == "ein ärger"


def test_it_is_saved_and_loaded_whole(tmp_path: Path) -> None:
    TOKENIZER.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded.get_vocab() == TOKENIZER.get_vocab()
    for text in (*TEXTS, "</s> Äpfel"):
        ids = loaded(text)["input_ids"]
        assert ids == TOKENIZER(text)["input_ids"]
        assert loaded.decode(ids, skip_special_tokens=True) == text


@pytest.mark.parametrize(("texts", "size"), [([], 400), (["   "], 400), (["a b"], 260)])
def test_nothing_to_learn_from_or_into(texts: list[str], size: int) -> None:
    with pytest.raises(UserError, match=r"no text|no room"):
        train_joint_bpe(texts, size)
