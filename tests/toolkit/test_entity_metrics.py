"""Entity scores against seqeval, and their intervals against resampling by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import classification_report

from toolkit.entity_metrics import (
    count_entities,
    describe_entities,
    entities,
    entity_names,
    f1_draws,
    scores,
)

TAG = st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
SENTENCES = st.lists(st.lists(st.tuples(TAG, TAG), min_size=1, max_size=9), min_size=1, max_size=6)


@given(SENTENCES)
def test_scores_are_seqevals(sentences: list[list[tuple[str, str]]]) -> None:
    gold = [[true for true, _ in sentence] for sentence in sentences]
    predicted = [[found for _, found in sentence] for sentence in sentences]
    tokens = [["x"] * len(sentence) for sentence in sentences]
    described = describe_entities(tokens, gold, predicted, set())
    if not described["types"]:
        assert described["entity_f1"]["value"] == 0
        return
    expected = classification_report(gold, predicted, output_dict=True, zero_division=0)
    micro = expected.pop("micro avg")
    assert described["entity_f1"]["value"] == pytest.approx(micro["f1-score"])
    assert described["precision"] == pytest.approx(micro["precision"])
    assert described["recall"] == pytest.approx(micro["recall"])
    for kind, values in described["types"].items():
        assert values["f1"] == pytest.approx(expected[kind]["f1-score"])
        assert values["precision"] == pytest.approx(expected[kind]["precision"])
        assert values["gold"] == expected[kind]["support"]


def test_only_the_exact_span_and_type_are_right() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC"]]
    predicted = [["B-PER", "O", "O", "B-LOC"], ["O", "B-PER"]]
    counts = count_entities(entities(gold), entities(predicted))
    assert counts.tolist() == [[1, 2, 2], [0, 1, 1]]
    assert scores(counts.sum(0)) == {
        "precision": 1 / 3, "recall": 1 / 3, "f1": 1 / 3, "right": 1, "predicted": 3, "gold": 3,
    }  # fmt: skip


def test_names_of_training_are_counted_apart() -> None:
    tokens = [["北", "京", "和", "东", "京"], ["王"]]
    gold = [["B-LOC", "I-LOC", "O", "B-LOC", "I-LOC"], ["B-PER"]]
    predicted = [["B-LOC", "I-LOC", "O", "O", "O"], ["B-LOC"]]
    seen = set(entity_names([["北", "京"], ["王"]], [["B-LOC", "I-LOC"], ["B-LOC"]]))
    assert seen == {("LOC", "北 京"), ("LOC", "王")}
    described = describe_entities(tokens, gold, predicted, seen)
    assert (described["seen"]["gold"], described["seen"]["predicted"]) == (1, 2)
    assert described["seen"]["right"] == 1
    assert (described["unseen"]["gold"], described["unseen"]["right"]) == (2, 0)


def test_draws_are_a_bootstrap_over_sentences() -> None:
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 4, 200)
    right = generator.integers(0, gold + 1)
    counts = np.stack([right, right + generator.integers(0, 3, 200), gold], 1)
    resampled = []
    for _ in range(4000):
        drawn = counts[generator.integers(0, 200, 200)].sum(0)
        resampled.append(2 * drawn[0] / (drawn[1] + drawn[2]))
    draws = f1_draws(counts, 4000)
    assert np.quantile(draws, [0.025, 0.5, 0.975]) == pytest.approx(
        np.quantile(resampled, [0.025, 0.5, 0.975]), abs=0.006
    )
