"""Sides of a pair as ids: cut, counted, and told to the user."""

from __future__ import annotations

import pytest

from toolkit.data.joint_bpe import train_joint_bpe
from toolkit.data.parallel import Pairs, ParallelSource
from toolkit.data.translation import TranslationData, split_pairs
from toolkit.data.translation_tokens import tokenize_pairs

TOKENIZER = train_joint_bpe(["cat dog", "猫狗"], 300)


@pytest.fixture
def data() -> TranslationData:
    def pairs(*texts: tuple[str, str]) -> Pairs:
        sources, targets = map(list, zip(*texts, strict=True))
        return Pairs(sources, targets, lambda row: f"row {row}", "test")

    splits = {
        "train": pairs(("cat", "猫"), ("dog dog dog dog", "狗")),
        "validation": pairs(("cat dog", "猫狗")),
        "test": pairs(("dog cat", "狗猫狗猫狗猫狗猫狗猫狗猫")),
    }
    return split_pairs(ParallelSource(splits), "test", ("en", "zh"))


def test_ids_and_lengths(data: TranslationData, capsys: pytest.CaptureFixture[str]) -> None:
    tokens = tokenize_pairs(data, TOKENIZER, 64, prefix="say: ")
    for split in (tokens.train, tokens.validation, tokens.test):
        for row in split:
            assert row["input_ids"] == TOKENIZER("say: " + row["source"])["input_ids"]
            assert row["labels"] == TOKENIZER(row["target"])["input_ids"]
            assert row["source_length"] == len(row["input_ids"])
            assert row["length"] == row["source_length"] + len(row["labels"])
    assert capsys.readouterr().err == ""
    assert tokens.summary["tokenization"]["splits"]["test"]["target"]["rows_cut"] == 0


def test_what_is_cut_is_said(data: TranslationData, capsys: pytest.CaptureFixture[str]) -> None:
    tokens = tokenize_pairs(data, TOKENIZER, 6)
    said = " ".join(capsys.readouterr().err.split())
    assert "cut to 6 tokens:" in said
    assert "1 test target texts" in said
    assert tokens.test["labels"][0][-1] == TOKENIZER.eos_token_id
    assert len(tokens.test["labels"][0]) == 6
    assert tokens.test["target"][0] == "狗猫狗猫狗猫狗猫狗猫狗猫"  # the reference stays whole
    counts = tokens.summary["tokenization"]["splits"]["test"]["target"]
    assert counts["rows_cut"] == 1
    assert counts["longest_text"] > 6


def test_unknown_tokens_are_said(data: TranslationData, capsys: pytest.CaptureFixture[str]) -> None:
    from transformers import BertTokenizer

    words = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog"])}
    tokenize_pairs(data, BertTokenizer(vocab=words), 64)
    said = " ".join(capsys.readouterr().err.split())
    assert "of the test target tokens are unknown" in said
    assert "source tokens are unknown" not in said
