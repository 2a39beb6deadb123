"""A byte-level vocabulary: everything can be written, and the order of texts does not matter."""

import random

import pytest
from hypothesis import given, strategies
from transformers import AutoTokenizer

from toolkit.data.byte_bpe import END_OF_TEXT, train_byte_bpe
from toolkit.errors import UserError

TEXTS = ["酒店房间很干净", "酒店服务很好", "the hotel was clean", "the room was fine"] * 4


@pytest.fixture(scope="module")
def tokenizer():
    return train_byte_bpe(TEXTS, 320)


@given(strategies.text(alphabet=strategies.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(tokenizer, text):
    ids = tokenizer(text, split_special_tokens=True)["input_ids"]
    assert tokenizer.decode(ids) == text


def test_frequent_words_are_tokens_and_the_end_of_text_is_the_only_special_one(tokenizer):
    assert len(tokenizer) <= 320
    assert len(tokenizer("酒店")["input_ids"]) == 1
    assert tokenizer.tokenize(" hotel") == ["Ġhotel"]
    ends = {tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token, tokenizer.unk_token}
    assert ends == {END_OF_TEXT}
    assert tokenizer.eos_token_id == 0
    assert len(train_byte_bpe(TEXTS, 270)) == 270


def test_order_of_texts_does_not_matter_and_a_folder_loads(tokenizer, tmp_path):
    shuffled = random.Random(0).sample(TEXTS, len(TEXTS))
    assert train_byte_bpe(shuffled, 320).get_vocab() == tokenizer.get_vocab()
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    text = f"酒店 é 饕餮\n{END_OF_TEXT} the hotel"
    assert loaded(text)["input_ids"] == tokenizer(text)["input_ids"]
    assert (loaded.pad_token_id, loaded.eos_token_id, loaded.model_max_length) == (0, 0, 1024)


def test_what_cannot_be_is_said():
    with pytest.raises(UserError, match="no room beside the 256 bytes"):
        train_byte_bpe(TEXTS, 257)
    with pytest.raises(UserError, match="no text"):
        train_byte_bpe(["", " "], 300)
