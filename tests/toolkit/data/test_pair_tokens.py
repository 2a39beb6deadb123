"""Pairs to token ids: the tokenizer's own sequence, cut where it is longest, with its own types."""

import datasets
import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from toolkit.data.collate import ClassificationCollator
from toolkit.data.text_classification import TextClassificationData, tokenize
from toolkit.errors import UserError

TEXTS = ["我在北京", "好", "太好了！", "来来来来来来来来来"]
PAIRS = ["牛", "我是来的，", "太好了。", "好好好好好好好好"]


def make_data(texts=TEXTS, pairs=PAIRS):
    split = datasets.Dataset.from_dict(
        {"id": list(map(str, range(len(texts)))), "text": texts, "pair": pairs,
         "label": [0] * len(texts)}
    )  # fmt: skip
    return TextClassificationData(split, split, split, ["a", "b"], {})


def cut_longest(first, second, room):
    """One token at a time from the longer side; of equal ones from that which was no longer."""
    kept = [list(first), list(second)]
    behind = int(len(second) < len(first))
    while len(kept[0]) + len(kept[1]) > room:
        lengths = [len(side) for side in kept]
        kept[behind if lengths[0] == lengths[1] else lengths.index(max(lengths))].pop()
    return kept


@pytest.mark.parametrize("limit", [5, 8, 11, 512])
def test_ids_and_types_are_those_of_the_pair_cut_where_it_is_longest(bert_tokenizer, limit):
    data = tokenize(make_data(), bert_tokenizer, limit)
    cls, sep = bert_tokenizer.cls_token_id, bert_tokenizer.sep_token_id
    for text, pair, row in zip(TEXTS, PAIRS, data.train, strict=True):
        sides = [bert_tokenizer(t, add_special_tokens=False)["input_ids"] for t in (text, pair)]
        first, second = cut_longest(*sides, limit - 3)
        assert row["input_ids"] == [cls, *first, sep, *second, sep]
        assert row["token_type_ids"] == [0] * (len(first) + 2) + [1] * (len(second) + 1)
        assert row["length"] == len(row["input_ids"])
    counts = data.summary["tokenization"]["splits"]["train"]
    full = [len(text) + len(pair) + 3 for text, pair in zip(TEXTS, PAIRS, strict=True)]
    assert counts["rows_cut"] == sum(length > limit for length in full)
    assert counts["tokens_lost"] == sum(max(0, length - limit) for length in full)


@pytest.mark.parametrize("side", ["right", "left"])
def test_batches_of_pairs_are_the_tokenizers_own(bert_tokenizer, side):
    bert_tokenizer.padding_side = side
    try:
        batch = ClassificationCollator(bert_tokenizer)(
            list(tokenize(make_data(), bert_tokenizer, 512).train)
        )
        expected = bert_tokenizer(TEXTS, PAIRS, padding=True, return_tensors="pt")
    finally:
        bert_tokenizer.padding_side = "right"
    assert batch.keys() == {*expected, "labels"}
    assert all(torch.equal(batch[name], expected[name]) for name in expected)


def test_room_for_one_token_of_either_text_is_needed(bert_tokenizer):
    assert max(tokenize(make_data(), bert_tokenizer, 5).train["length"]) == 5
    with pytest.raises(UserError, match="no room for two texts: 3 of them are special tokens"):
        tokenize(make_data(), bert_tokenizer, 4)


def test_a_tokenizer_that_puts_nothing_between_the_texts_is_warned_of(bert_tokenizer, capsys):
    words = Tokenizer(models.WordLevel({"好": 0, "牛": 1}, unk_token="牛"))
    bare = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="牛", model_input_names=["input_ids", "attention_mask"]
    )
    data = tokenize(make_data(["好"], ["牛"]), bare, 16)
    assert data.train["input_ids"][:] == [[0, 1]]
    assert "token_type_ids" not in data.train.column_names
    assert "nothing between the two texts" in capsys.readouterr().err
    tokenize(make_data(), bert_tokenizer, 16)
    assert "nothing between" not in capsys.readouterr().err
