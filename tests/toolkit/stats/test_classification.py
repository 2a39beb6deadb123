"""Macro F1 and its bootstrap against scikit-learn and brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from toolkit.stats import macro_f1, macro_f1_draws, macro_f1_scores, macro_f1_statistics


def test_macro_f1_equals_its_definition_over_all_labels():
    rng = np.random.default_rng(4)
    labels, predictions = rng.integers(0, 4, (2, 90))
    right = [((labels == k) & (predictions == k)).sum() for k in range(4)]
    named = [(labels == k).sum() + (predictions == k).sum() for k in range(4)]
    expected = sum(2 * r / n for r, n in zip(right, named, strict=True)) / 5  # the fifth counts 0
    assert macro_f1(labels, predictions, num_labels=5) == pytest.approx(expected)


def test_bootstrap_scores_equal_scikit_learn_on_the_same_sample():
    # With one draw the multinomial counts are known from the seed: rebuild that very sample.
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, 60)
    predictions = rng.integers(0, 3, (2, 60))
    scores = macro_f1_draws(labels, predictions, num_labels=4, draws=1, seed=9)
    patterns, frequency = np.unique(np.vstack([labels, predictions]), axis=1, return_counts=True)
    counts = np.random.default_rng(9).multinomial(60, frequency / 60)
    sample = np.repeat(patterns, counts, axis=1)
    for system in range(2):
        expected = f1_score(
            sample[0], sample[1 + system], labels=range(4), average="macro", zero_division=0
        )
        assert scores[system, 0] == pytest.approx(expected)


def test_bootstrap_has_the_distribution_of_resampled_examples():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 200)
    predictions = np.stack([np.where(rng.random(200) < p, labels, 1 - labels) for p in (0.9, 0.8)])
    fast = macro_f1_draws(labels, predictions, 2, draws=4000)
    brute = np.empty((2, 400))
    for draw in range(400):
        rows = rng.integers(0, 200, 200)
        for system in range(2):
            brute[system, draw] = f1_score(labels[rows], predictions[system, rows], average="macro")
    assert fast.mean(axis=1) == pytest.approx(brute.mean(axis=1), abs=0.005)
    difference, slow_difference = fast[0] - fast[1], brute[0] - brute[1]
    assert difference.std() == pytest.approx(slow_difference.std(), rel=0.15)


def test_bootstrap_is_paired_and_repeatable():
    labels = np.array([0, 1] * 50)
    predictions = np.stack([labels, labels])
    scores = macro_f1_draws(labels, predictions, 2, draws=50)
    assert np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores, macro_f1_draws(labels, predictions, 2, draws=50))
    with pytest.raises(ValueError, match="shape"):
        macro_f1_draws(labels, labels, 2)


def test_bootstrap_in_blocks_gives_as_many_draws(monkeypatch):
    monkeypatch.setattr("toolkit.stats.draws._MAX_BLOCK_CELLS", 20)
    labels = np.array([0, 1] * 50)
    scores = macro_f1_draws(labels, (1 - labels)[np.newaxis], 2, draws=23)
    assert scores.shape == (1, 23)
    assert np.all(scores == 0.0)


@given(st.data())
def test_macro_f1_of_sums_equals_scikit_learn(data):
    num_labels = data.draw(st.integers(1, 5))
    names = st.lists(st.integers(0, num_labels - 1), min_size=12, max_size=12)
    labels, predictions = np.array(data.draw(names)), np.array(data.draw(names))
    sums = macro_f1_statistics(labels, predictions, num_labels).sum(0)
    expected = f1_score(
        labels, predictions, labels=range(num_labels), average="macro", zero_division=0
    )
    assert macro_f1_scores(sums) == pytest.approx(expected)
    assert macro_f1_scores(np.stack([sums, 0 * sums])) == pytest.approx([expected, 0.0])
