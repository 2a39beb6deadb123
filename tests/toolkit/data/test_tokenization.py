"""Token ids against the tokenizer's own for each text; what is cut and unknown is counted."""

import datasets
import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import (
    AutoTokenizer,
    BertConfig,
    GPT2Config,
    PreTrainedTokenizerFast,
    RobertaConfig,
)

from toolkit.data.collate import ClassificationCollator
from toolkit.data.text_classification import TextClassificationData, tokenize
from toolkit.data.tokenization import check_tokenizer, length_limit, usable_positions
from toolkit.errors import UserError

SHORT = ["我在北京", "太好了！", "a开b", "", "😀😀"]
LONG = ["好" * 600, "牛" * 511, "来" * 510, "来" * 509]


def word_tokenizer(**options):
    words = Tokenizer(models.WordLevel({"a": 0, "b": 1}))
    return PreTrainedTokenizerFast(tokenizer_object=words, **options)


def make_data(train, validation=("好",), test=("好",)):
    splits = [
        datasets.Dataset.from_dict(
            {"id": list(map(str, range(len(t)))), "text": t, "label": [0] * len(t)}
        )
        for t in (list(train), list(validation), list(test))
    ]
    return TextClassificationData(*splits, label_names=["a", "b"], summary={"source": "here"})


def test_ids_are_the_tokenizers_own_with_its_own_cut(bert_tokenizer):
    data = tokenize(make_data(SHORT + LONG), bert_tokenizer, 512)
    for row in data.train:
        expected = bert_tokenizer(row["text"], truncation=True, max_length=512)["input_ids"]
        assert row["input_ids"] == expected
        assert row["length"] == len(expected)
    assert data.train.column_names == ["id", "text", "label", "input_ids", "length"]
    assert data.summary["source"] == "here"


def test_cut_rows_are_counted_and_said(bert_tokenizer, capsys):
    data = tokenize(make_data(SHORT + LONG, test=LONG), bert_tokenizer, 512)
    counts = data.summary["tokenization"]["splits"]
    # 510 characters and two special tokens fit.
    assert counts["train"]["rows_cut"] == counts["test"]["rows_cut"] == 2
    assert counts["train"]["tokens_lost"] == (602 - 512) + (513 - 512)
    assert counts["train"]["longest_text"] == 602
    assert counts["validation"]["rows_cut"] == 0
    message = capsys.readouterr().err
    assert "texts cut to 512 tokens: 2 in train, 2 in test (the longest has 602 tokens)" in message


def test_tokenizer_without_a_limit_is_cut_all_the_same(bert_tokenizer):
    assert bert_tokenizer.model_max_length > 1e29  # as its folder says nothing
    data = tokenize(make_data(LONG), bert_tokenizer, 64)
    assert max(data.train["length"]) == data.summary["tokenization"]["max_length"] == 64


def test_limit_is_the_least_of_what_is_asked_the_tokenizers_and_the_models(bert_tokenizer):
    config = BertConfig(max_position_embeddings=64)
    assert length_limit(256, bert_tokenizer) == 256
    assert length_limit(256, bert_tokenizer, config) == 64
    assert length_limit(32, bert_tokenizer, config) == 32
    bert_tokenizer.model_max_length = 48
    try:
        assert length_limit(256, bert_tokenizer, config) == 48
    finally:
        bert_tokenizer.model_max_length = int(1e30)
    with pytest.raises(UserError, match="2 of them are special tokens"):
        length_limit(2, bert_tokenizer)


@pytest.mark.parametrize(("pad", "usable"), [(1, 512), (3, 510)])
def test_roberta_positions_begin_after_the_padding_id(pad, usable):
    config = RobertaConfig(max_position_embeddings=514, pad_token_id=pad)
    assert usable_positions(config) == usable
    assert usable_positions(GPT2Config(n_positions=100)) == 100


def test_unknown_tokens_are_counted_and_warned_about(bert_tokenizer, capsys):
    data = tokenize(make_data(["鑫我", "我在"], validation=["我在"]), bert_tokenizer, 32)
    counts = data.summary["tokenization"]["splits"]
    assert counts["train"]["unknown_tokens"] == 1
    assert counts["train"]["unknown_share"] == pytest.approx(1 / 8)
    assert counts["validation"]["unknown_share"] == 0
    message = capsys.readouterr().err
    assert "12.5% of the tokens in train are unknown" in message
    assert "in validation" not in message


def test_tokenizer_of_another_model_is_refused(bert_tokenizer):
    size = len(bert_tokenizer)
    check_tokenizer(bert_tokenizer, size)
    check_tokenizer(bert_tokenizer, size + 20)  # embeddings are often padded
    with pytest.raises(UserError, match=f"has {size} tokens but the model only {size - 1} "):
        check_tokenizer(bert_tokenizer, size - 1)
    with pytest.raises(UserError, match="vocabulary file is missing"):
        check_tokenizer(bert_tokenizer, 21128)


def test_progress_bars_are_as_they_were(bert_tokenizer, capsys):
    datasets.enable_progress_bars()
    tokenize(make_data(SHORT), bert_tokenizer, 32)
    assert "tokenising" not in capsys.readouterr().err
    assert not datasets.are_progress_bars_disabled()


@pytest.mark.parametrize("side", ["right", "left"])
def test_batches_are_the_tokenizers_own(bert_tokenizer, side):
    bert_tokenizer.padding_side = side
    try:
        data = tokenize(make_data(SHORT), bert_tokenizer, 512)
        rows = [{**row, "index": i + 7} for i, row in enumerate(data.train)]
        batch = ClassificationCollator(bert_tokenizer)(rows)
        expected = bert_tokenizer(SHORT, padding=True, return_tensors="pt")
    finally:
        bert_tokenizer.padding_side = "right"
    assert batch.keys() == {*expected, "labels", "index"}
    assert all(torch.equal(batch[name], expected[name]) for name in expected)
    assert batch["labels"].tolist() == [0] * 5
    assert batch["index"].tolist() == [7, 8, 9, 10, 11]
    assert all(tensor.dtype == torch.int64 for tensor in batch.values())


def test_types_only_where_the_model_takes_them_and_labels_only_where_there_are():
    bare = word_tokenizer(pad_token="a", model_input_names=["input_ids", "attention_mask"])
    batch = ClassificationCollator(bare)([{"input_ids": [5, 6]}, {"input_ids": [5]}])
    assert {name: tensor.tolist() for name, tensor in batch.items()} == {
        "input_ids": [[5, 6], [5, 0]],
        "attention_mask": [[1, 1], [1, 0]],
    }


def test_tokenizer_without_padding_token_is_refused():
    with pytest.raises(UserError, match="no padding token"):
        ClassificationCollator(word_tokenizer())


def test_slow_start_of_a_saved_tokenizer_changes_no_ids(bert_tokenizer, tmp_path):
    bert_tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    texts = SHORT + LONG
    first = tokenize(make_data(texts), bert_tokenizer, 64).train["input_ids"][:]
    assert tokenize(make_data(texts), loaded, 64).train["input_ids"][:] == first
