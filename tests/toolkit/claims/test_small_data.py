"""Claim 9: features, its rule, and that it runs (with a tiny network in place of the real one)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from transformers import BertConfig

from scratch_models import ScratchBertModel
from toolkit.claims import small_data
from toolkit.claims.claim import Claim, Finding, Verdict
from toolkit.claims.over_seeds import Spread
from toolkit.claims.small_data import (
    PRETRAINED,
    QUICK,
    RANDOM,
    SMALL,
    TFIDF,
    better_by_labels,
    decide,
    features,
    labels_to_reach,
    linear_accuracy,
    read_splits,
)
from toolkit.data.tokenizer_training import train_wordpiece

TEXTS = ["房间很干净", "太差了", "服务态度非常好，下次还会来", "书的质量一般"]


def _tiny() -> tuple[object, ScratchBertModel]:
    tokenizer = train_wordpiece(TEXTS, 60, min_frequency=1)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32, initializer_range=0.3,
    )  # fmt: skip
    return tokenizer, ScratchBertModel(config).eval()


def test_features_are_means_over_real_tokens_in_the_order_of_the_texts() -> None:
    tokenizer, model = _tiny()
    found = features(model, tokenizer, TEXTS, batch_size=3)
    for row, text in enumerate(TEXTS):
        alone = tokenizer(text, return_tensors="pt")  # type: ignore[operator]
        with torch.no_grad():
            hidden = model(input_ids=alone["input_ids"]).last_hidden_state[0]
        np.testing.assert_allclose(found[row], hidden.mean(0).numpy(), atol=1e-5)


def test_penalty_is_chosen_on_validation() -> None:
    generator = np.random.default_rng(0)
    classes = generator.integers(0, 2, 60)
    points = np.eye(2)[classes].astype(np.float32) + 0.05
    split = (
        (points[:20], classes[:20]),
        (points[20:40], classes[20:40]),
        (points[40:], classes[40:]),
    )
    assert linear_accuracy(*split, penalties=(0.1, 10.0)) == 1.0
    turned = (split[2][0], 1 - split[2][1])
    assert linear_accuracy(split[0], split[1], turned, penalties=(0.1, 10.0)) == 0.0


def test_seeds_share_no_training_rows() -> None:
    splits = read_splits(QUICK, 0)
    texts = [set(rows.texts) for rows in splits.train]
    assert [len(one) for one in texts] == [QUICK.more_labels] * QUICK.seeds
    assert not texts[0] & texts[1]
    held_out = {*splits.validation.texts, *splits.test.texts}
    assert not held_out & (texts[0] | texts[1])
    for rows in splits.train:  # both classes from the first few on
        assert set(rows.labels[: QUICK.labels[0]].tolist()) == {0, 1}


FOUND = {
    PRETRAINED: {8: [0.80, 0.82], 16: [0.84, 0.86]},
    RANDOM: {8: [0.60, 0.62], 16: [0.60, 0.70]},
    SMALL: {8: [0.50, 0.55], 16: [0.70, 0.72], 64: [0.81, 0.83]},
    TFIDF: {8: [0.55, 0.55], 16: [0.65, 0.65], 64: [0.80, 0.80]},
}


def test_better_of_the_others() -> None:
    assert [one.values for one in better_by_labels(QUICK, FOUND)] == [
        pytest.approx([0.20, 0.20]),  # against random weights
        pytest.approx([0.14, 0.14]),  # against the small network
    ]


def test_labels_to_reach() -> None:
    assert labels_to_reach(FOUND, 0.81) == 64
    assert labels_to_reach(FOUND, 0.61) == 8
    assert labels_to_reach(FOUND, 0.85) is None


def test_rule() -> None:
    better, worse = Spread.of([0.05, 0.06, 0.07]), Spread.of([-0.05, -0.06, -0.07])
    unclear = Spread.of([-0.1, 0.0, 0.1])
    assert decide([better, better], better) is Verdict.HOLDS
    assert decide([better, better], worse) is Verdict.PARTLY
    assert decide([worse, worse], worse) is Verdict.FAILS
    assert decide([unclear, worse], worse) is Verdict.UNDECIDED


def test_quick_finding(
    quick_finding: Callable[[Claim], Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer, model = _tiny()
    monkeypatch.setattr(
        small_data, "load_encoders", lambda: (tokenizer, {PRETRAINED: model, RANDOM: _tiny()[1]})
    )
    data = quick_finding(small_data.CLAIM).data
    accuracy = data["accuracy"]
    assert list(accuracy["pretrained"]) == ["8", "16"]
    assert list(accuracy["small_from_scratch"]) == ["8", "16", "64"]
    assert list(accuracy["tfidf"]) == ["8", "16", "64"]
    assert accuracy["pretrained"] == accuracy["random_frozen"]  # the same weights
    assert data["labels_without_pretraining_to_reach"]["8"] is not None
