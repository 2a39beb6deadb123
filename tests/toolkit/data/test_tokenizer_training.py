"""A vocabulary trained here works like one from the Hub."""

import random

import pytest

from toolkit.data.tokenizer_training import train_wordpiece
from toolkit.errors import UserError

TEXTS = [
    "这家酒店的WiFi很快，服务也好。",
    "房间很干净，早餐也不错！WiFi 123",
    "playing played player plays，玩得很好",
    "The player plays; playing is 好",
] * 3


@pytest.fixture(scope="module")
def tokenizer():
    return train_wordpiece(TEXTS, 200)


def test_saved_folder_loads_with_equal_ids(tokenizer, tmp_path):
    from transformers import AutoTokenizer

    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    texts = [*TEXTS, "Played 12，没见过的字：鑫 😀"]
    assert loaded(texts)["input_ids"] == tokenizer(texts)["input_ids"]
    assert loaded.get_vocab() == tokenizer.get_vocab()
    assert loaded.model_max_length == 512
    assert loaded.mask_token_id == 4


def test_chinese_characters_are_single_and_known_words_come_back(tokenizer):
    assert tokenizer.tokenize("很干净的酒店") == list("很干净的酒店")
    assert tokenizer.decode(tokenizer("players playing")["input_ids"][1:-1]) == "players playing"
    pieces = set(tokenizer.get_vocab())
    chinese = {piece for piece in pieces if any(character >= "\u4e00" for character in piece)}
    assert all(len(piece) == 1 for piece in chinese)


def test_frequent_words_are_joined_and_rare_ones_are_not(tokenizer):
    assert tokenizer.tokenize("wifi") == ["wifi"]
    assert len(tokenizer.tokenize("wifii")) > 1


def test_order_of_texts_and_repetition_of_training_do_not_matter(tokenizer):
    """Processes of one run, and a resumed run, must agree on every id."""
    for seed in range(3):
        shuffled = random.Random(seed).sample(TEXTS, len(TEXTS))
        assert train_wordpiece(shuffled, 200).get_vocab() == tokenizer.get_vocab()


@pytest.mark.parametrize(("size", "missing"), [(6, list("很好，的")), (30, ["的"]), (80, [])])
def test_small_vocabularies_keep_their_size_and_the_most_frequent_characters(size, missing):
    tokenizer = train_wordpiece(TEXTS, size)
    assert len(tokenizer) <= size
    assert tokenizer.convert_ids_to_tokens(range(5)) == [
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
    ]  # fmt: skip
    assert [c for c in "很好，的" if c not in tokenizer.get_vocab()] == missing


def test_more_than_a_thousand_characters_are_kept():
    characters = [chr(code) for code in range(0x4E00, 0x4E00 + 3000)]
    tokenizer = train_wordpiece(["".join(characters)], 4000)
    assert tokenizer.tokenize("".join(characters)) == characters


def test_case_is_kept_on_request():
    assert train_wordpiece(TEXTS, 200, lowercase=False).tokenize("WiFi") == ["WiFi"]


def test_no_room_and_no_text_are_refused():
    with pytest.raises(UserError, match="no room"):
        train_wordpiece(TEXTS, 5)
    with pytest.raises(UserError, match="no text"):
        train_wordpiece(["", "  "], 100)
