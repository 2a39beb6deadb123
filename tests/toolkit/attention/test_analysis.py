"""Shares, distances and entropies of heads made by hand, and against a loop over every weight."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from toolkit.attention import AttentionMaps, Tokens
from toolkit.attention.analysis import PLACES, Numbers, analyse
from toolkit.attention.weights import Kind


def tokens(length: int, special: tuple[int, ...] = ()) -> Tokens:
    return Tokens(
        tuple(f"t{place}" for place in range(length)),
        tuple(place in special for place in range(length)),
    )


def maps_of(rows: Tensor, kind: Kind = "encoder", special: tuple[int, ...] = ()) -> AttentionMaps:
    """A model of one layer, a head per table of rows [heads, queries, keys]."""
    row = tokens(rows.shape[-1], special)
    return AttentionMaps(kind, rows[None].float(), row, row)


def shares(numbers: Numbers) -> dict[str, float]:
    return {place: estimate.value for place, estimate in numbers.shares.items()}


def test_a_head_that_looks_at_the_previous_token() -> None:
    """Of [CLS] a b c [SEP]: a's previous token is special, b's and c's are words."""
    rows = torch.zeros(1, 5, 5)
    for query in range(5):
        rows[0, query, max(query - 1, 0)] = 1
    found = analyse([maps_of(rows, special=(0, 4))])
    numbers = found.heads[0][0]
    assert shares(numbers) == pytest.approx(
        {"special": 1 / 3, "self": 0, "previous": 2 / 3, "next": 0, "elsewhere": 0}
    )
    assert (found.queries, found.texts) == (3, 1)
    assert numbers.entropy.value == 0
    assert numbers.distance is not None
    assert numbers.distance.value == 1


def test_a_previous_head_without_special_tokens_gives_it_everything() -> None:
    """But for the first token, which has none and stays at itself."""
    rows = torch.zeros(1, 8, 8)
    for query in range(8):
        rows[0, query, max(query - 1, 0)] = 1
    numbers = analyse([maps_of(rows, "decoder")]).heads[0][0]
    assert numbers.shares["previous"].value == pytest.approx(7 / 8)
    assert numbers.shares["self"].value == pytest.approx(1 / 8)


def test_a_uniform_head_has_the_numbers_of_its_comparison() -> None:
    length = 6
    found = analyse([maps_of(torch.full((1, length, length), 1 / length), special=(0, 5))])
    for numbers in (found.heads[0][0], found.uniform, found.layers[0]):
        # Queries 1 to 4: two special keys; 1 has no previous and 4 no next one beside them.
        assert shares(numbers) == pytest.approx(
            {
                "special": 2 / 6,
                "self": 1 / 6,
                "previous": 3 / 24,
                "next": 3 / 24,
                "elsewhere": 1 / 4,
            }
        )
        assert numbers.entropy.value == pytest.approx(math.log2(6))
        assert numbers.relative_entropy.value == pytest.approx(1)
        assert numbers.distance is not None
        # |q - k| among four neighbours: 20 over all 16 pairs.
        assert numbers.distance.value == pytest.approx(20 / 16)


def test_a_uniform_causal_head_sees_what_is_before_it_alone() -> None:
    length = 4
    rows = torch.tril(torch.ones(length, length))
    rows = rows / rows.sum(-1, keepdim=True)
    found = analyse([maps_of(rows[None], "decoder")])
    for numbers in (found.heads[0][0], found.uniform):
        assert numbers.entropy.value == pytest.approx(
            (math.log2(1) + math.log2(2) + math.log2(3) + math.log2(4)) / 4
        )
        assert numbers.relative_entropy.value == pytest.approx(1)
        assert numbers.shares["next"].value == 0
        assert numbers.shares["self"].value == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


def brute_force(maps: list[AttentionMaps], layer: int, head: int) -> dict[str, float]:
    """Every weight by itself."""
    totals = dict.fromkeys((*PLACES, "distance", "to_text", "entropy", "most", "queries"), 0.0)
    for each in maps:
        special = each.keys.special
        for q in range(len(each.queries)):
            if each.queries.special[q]:
                continue
            totals["queries"] += 1
            seen = 0
            for k in range(len(each.keys)):
                if each.kind == "decoder" and k > q:
                    continue
                seen += 1
                weight = float(each.weights[layer, head, q, k].double())
                place = {0: "self", -1: "previous", 1: "next"}.get(k - q, "elsewhere")
                totals["special" if special[k] else place] += weight
                if not special[k]:
                    totals["distance"] += weight * abs(q - k)
                    totals["to_text"] += weight
                totals["entropy"] -= weight * math.log2(weight) if weight else 0.0
            totals["most"] += math.log2(seen)
    queries = totals["queries"]
    return {place: totals[place] / queries for place in PLACES} | {
        "distance": totals["distance"] / totals["to_text"],
        "entropy": totals["entropy"] / queries,
        "relative": totals["entropy"] / totals["most"],
    }


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_every_head_equals_a_loop_over_its_weights(kind: Kind) -> None:
    generator = torch.Generator().manual_seed(3)
    texts = []
    for length, special in ((5, (0, 4)), (9, (0, 8)), (3, ()), (7, (0, 3, 6))):
        scores = 3 * torch.randn(2, 3, length, length, generator=generator)
        if kind == "decoder":
            scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
        row = tokens(length, special)
        texts.append(AttentionMaps(kind, scores.softmax(-1), row, row))
    found = analyse(texts)
    for layer in range(2):
        means = []
        for head in range(3):
            expected = brute_force(texts, layer, head)
            numbers = found.heads[layer][head]
            assert numbers.distance is not None
            actual = shares(numbers) | {
                "distance": numbers.distance.value,
                "entropy": numbers.entropy.value,
                "relative": numbers.relative_entropy.value,
            }
            assert actual == pytest.approx(expected, abs=1e-9)
            assert sum(shares(numbers).values()) == pytest.approx(1, abs=1e-5)
            means.append(expected["entropy"])
        assert found.layers[layer].entropy.value == pytest.approx(np.mean(means))


def test_cross_attention_has_no_neighbours() -> None:
    weights = torch.tensor([[[[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]]])
    maps = AttentionMaps("cross", weights, tokens(2, (1,)), tokens(3, (2,)))
    numbers = analyse([maps]).heads[0][0]
    assert shares(numbers) == pytest.approx({"special": 0.25, "elsewhere": 0.75})
    assert numbers.distance is None
    assert numbers.entropy.value == pytest.approx(1.5)
    assert numbers.relative_entropy.value == pytest.approx(1.5 / math.log2(3))


def test_intervals_are_over_texts() -> None:
    """Half of the texts look back, half at themselves: the interval is the binomial's."""
    back, still = torch.zeros(1, 2, 2), torch.eye(2)[None]
    back[0, 0, 0] = back[0, 1, 0] = 1
    texts = [maps_of(rows, "decoder") for rows in (back, still) for _ in range(50)]
    share = analyse(texts).heads[0][0].shares["previous"]
    assert share.value == pytest.approx(0.25)  # half of the tokens of half of the texts
    half = 1.96 * math.sqrt(0.25 / 100) / 2
    assert share.interval.low == pytest.approx(0.25 - half, abs=0.011)
    assert share.interval.high == pytest.approx(0.25 + half, abs=0.011)
    again = analyse(texts).heads[0][0].shares["previous"]
    assert again == share  # the seed decides
    single = analyse(texts[:1]).heads[0][0].shares["previous"]
    assert (single.interval.low, single.interval.high) == (single.value, single.value)


def test_texts_of_special_tokens_alone() -> None:
    with pytest.raises(ValueError, match="special tokens only"):
        analyse([maps_of(torch.full((1, 2, 2), 0.5), special=(0, 1))])
