"""Unigram and bigram losses against a computation by hand."""

import math

import pytest

from toolkit.ngrams import ngram_losses


def test_by_hand():
    train, held_out = [[1, 2, 0], [1, 2, 2, 0]], [[1, 2, 0], [1, 1], [3, 1]]
    losses = ngram_losses(train, held_out, vocab_size=4)
    # counts: 0 twice, 1 twice, 2 three times; after 1 always 2; after 2: 0 twice, 2 once
    uni = {0: 3 / 11, 1: 3 / 11, 2: 4 / 11}
    assert losses["unigram"] == pytest.approx(
        [-math.log(uni[2] * uni[0]), -math.log(uni[1]), -math.log(uni[1])]
    )
    assert losses["bigram"] == pytest.approx(
        [-math.log(3 / 6 * 3 / 7), -math.log(1 / 6), -math.log(1 / 4)]
    )
    witten_bell = [
        -math.log((2 + uni[2]) / 3 * (2 + 2 * uni[0]) / 5),
        -math.log(uni[1] / 3),
        -math.log(uni[1]),  # nothing was ever seen after 3
    ]
    assert losses["interpolated bigram"] == pytest.approx(witten_bell)


@pytest.mark.parametrize("name", ["unigram", "bigram", "interpolated bigram"])
def test_probabilities_sum_to_one(name):
    train = [[1, 2, 0], [1, 2, 2, 0], [3, 0]]
    for before in range(5):
        losses = ngram_losses(train, [[before, token] for token in range(5)], vocab_size=5)
        assert sum(math.exp(-loss) for loss in losses[name]) == pytest.approx(1)
