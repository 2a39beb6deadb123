"""What tells two pretraining runs apart: whether they were asked for the same tokens."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np
import pytest

from toolkit.data.pretraining import PretrainingCollator, tokenize_documents
from toolkit.data.tokenizer_training import train_wordpiece
from toolkit.pretraining import masked_hash

TEXTS = [f"{'书本作者' * (n % 4 + 1)}{n}。{'故事文字' * (n % 3 + 1)}！" for n in range(70)]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_wordpiece(TEXTS, 200)


def hash_of(tokenizer: Any, texts: list[str] = TEXTS, **settings: Any) -> str:
    options = {"max_length": 32, "seed": 1} | settings
    documents = tokenize_documents(texts, tokenizer, options["max_length"])
    return masked_hash(documents, PretrainingCollator(tokenizer, documents, **options))


def test_the_hash_is_that_of_every_row_by_itself(tokenizer: Any) -> None:
    """Rows are masked one by one, without padding, and with it in batches."""
    documents = tokenize_documents(TEXTS, tokenizer, 32)
    collate = PretrainingCollator(tokenizer, documents, 32, seed=1)
    digest = hashlib.sha256()
    for number in range(len(documents)):
        [[ids], [labels], [follows]] = (
            collate([{**documents[number], "index": number, "epoch": 0}])[name].tolist()
            for name in ("input_ids", "labels", "next_sentence_label")
        )
        digest.update(np.array([len(ids), follows, *ids, *labels], dtype="<i8").tobytes())
    assert hash_of(tokenizer) == digest.hexdigest()
    tokenizer.padding_side = "left"
    try:
        assert hash_of(tokenizer) == digest.hexdigest()
    finally:
        tokenizer.padding_side = "right"


def test_whatever_changes_what_is_asked_changes_the_hash(tokenizer: Any) -> None:
    shuffled = random.Random(0).sample(TEXTS, len(TEXTS))
    hashes = [
        hash_of(tokenizer),
        hash_of(tokenizer, seed=2),
        hash_of(tokenizer, mask_share=0.2),
        hash_of(tokenizer, max_length=9),
        hash_of(tokenizer, shuffled),
        hash_of(tokenizer, TEXTS[:-1]),
        hash_of(train_wordpiece([*TEXTS, "一丁。七万！"] * 2, 200)),
    ]
    assert len(set(hashes)) == len(hashes)
