"""Claim 5: chains counted by hand, its rule, and that it runs. No time is asserted."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from toolkit.bench.interleaved import Spread
from toolkit.claims import parallel
from toolkit.claims.chains import longest_chain
from toolkit.claims.claim import Claim, Finding, Verdict
from toolkit.claims.parallel import LSTM, TRANSFORMER, by_round, decide, growth


def test_longest_chain_by_hand() -> None:
    a, b = (torch.ones(2, 2, requires_grad=True) for _ in range(2))
    assert longest_chain(a + b) == 0
    assert longest_chain(a @ b) == 1
    assert longest_chain((a @ b) + (b @ a)) == 1  # neither waits
    assert longest_chain((a @ b) @ (b @ a)) == 2
    deep = a
    for _ in range(3000):  # no recursion
        deep = deep @ b
    assert longest_chain(deep) == 3000
    with pytest.raises(ValueError, match="without gradients"):
        longest_chain(torch.ones(1))


@pytest.mark.parametrize("length", [3, 9])
def test_an_lstm_waits_for_every_token(length: int) -> None:
    # The input of the first token, then the state of every later one, then the head.
    model = parallel.build(LSTM, parallel.QUICK)
    assert parallel.products_in_turn(model, length) == 1 + (length - 1) + 1


@pytest.mark.parametrize("length", [3, 9])
def test_a_transformer_waits_for_layers_only(length: int) -> None:
    # A layer: query, key and value at once; scores; values mixed; output; up; down. Then the head.
    model = parallel.build(TRANSFORMER, parallel.FULL)
    assert parallel.products_in_turn(model, length) == 6 * parallel.FULL.layers + 1
    assert model.config._attn_implementation == "sdpa"  # type: ignore[union-attr]


def test_loss_is_of_the_next_token() -> None:
    model = parallel.build(LSTM, parallel.QUICK)
    tokens = torch.tensor([[3, 7, 1], [0, 2, 5]])
    chances = model(tokens).log_softmax(-1)
    expected = -sum(
        chances[row, place, tokens[row, place + 1]] for row in (0, 1) for place in (0, 1)
    )
    torch.testing.assert_close(parallel.next_token_loss(model, tokens), expected / 4)


def test_by_round_and_growth() -> None:
    assert by_round([2.0, 6.0, 4.0], [1.0, 2.0, 4.0]) == Spread(2.0, 1.0, 3.0)
    assert growth({16: [1.0, 2.0], 64: [9.0, 9.0], 256: [3.0, 5.0]}) == [3.0, 2.5]


@pytest.mark.parametrize("rounds", [3, 5, 6, 9, 15, 40])
def test_median_interval_leaves_out_as_many_as_it_may(rounds: int) -> None:
    found = parallel.median_interval([float(value) for value in range(rounds, 0, -1)])
    left_out = int(found.lowest) - 1
    assert found.highest == rounds - left_out
    assert found.median == (rounds + 1) / 2

    def misses(count: int) -> float:
        """The chance that the true median lies outside, by counting coins."""
        return 2 * sum(math.comb(rounds, k) for k in range(count + 1)) / 2**rounds

    if rounds < 6:
        assert left_out == 0
    else:
        assert misses(left_out) <= 0.05 < misses(left_out + 1)


def test_rule() -> None:
    over, under, around = Spread(2.0, 1.1, 3.0), Spread(0.6, 0.5, 0.9), Spread(1.0, 0.9, 1.1)
    assert decide(over, over) is Verdict.HOLDS
    assert decide(under, over) is Verdict.PARTLY
    assert decide(under, under) is Verdict.FAILS
    assert decide(around, under) is Verdict.UNDECIDED


def test_quick_finding(quick_finding: Callable[[Claim], Finding]) -> None:
    threads = torch.get_num_threads()
    data = quick_finding(parallel.CLAIM).data
    assert torch.get_num_threads() == threads
    assert data["products_in_turn"] == {LSTM: [5, 17], TRANSFORMER: [7, 7]}
    for found in data["seconds"].values():
        assert [len(rounds) for rounds in found[LSTM]] == [3, 3]


def test_both_numbers_that_decide_are_said() -> None:
    """At 16 tokens the LSTM takes half the time, and from 4 to 16 it grows 2 / 4 as much."""
    seconds = {LSTM: {4: [1.0] * 9, 16: [2.0] * 9}, TRANSFORMER: {4: [1.0] * 9, 16: [4.0] * 9}}
    chains = {kind: {4: 1, 16: 1} for kind in seconds}
    finding = parallel.report(parallel.QUICK, chains, {1: seconds})
    assert "takes the LSTM 0.50 [0.50, 0.50] times as long" in finding.sentence
    assert "4.00 times in the Transformer (ratio 0.50 [0.50, 0.50])" in finding.sentence
