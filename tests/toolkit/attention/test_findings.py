"""Sentences hold the numbers they are about."""

from __future__ import annotations

import pytest
import torch

from toolkit.attention import AttentionMaps, Tokens
from toolkit.attention.analysis import Numbers, analyse
from toolkit.attention.findings import head_sentence, role, sentence_findings, summary
from toolkit.attention.sentence import SENTENCE, gazes, links, unread
from toolkit.stats import Estimate, Interval


def estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, Interval(low, high, "by hand"))


def numbers(entropy: float = 0.5, **values: tuple[float, float, float]) -> Numbers:
    places = dict.fromkeys(("special", "self", "previous", "next", "elsewhere"), (0.1, 0.1, 0.1))
    return Numbers(
        {place: estimate(*value) for place, value in (places | values).items()},
        estimate(2, 1, 3),
        estimate(4 * entropy, 1, 2),
        estimate(entropy, entropy - 0.01, entropy + 0.01),
    )


UNIFORM = numbers(1.0, previous=(0.09, 0.09, 0.09))


def test_a_head_is_named_after_the_place_that_gets_most() -> None:
    head = numbers(previous=(0.712, 0.681, 0.743))
    assert head_sentence(2, 1, head, UNIFORM) == (
        "Layer 2 head 1 looks at the previous token: 71.2% [68.1, 74.3] of its attention "
        "(a uniform head: 9.0%)."
    )
    assert role(numbers(previous=(0.39, 0.38, 0.40)), UNIFORM) == "mixed"  # less than two fifths
    # Not surely more than a uniform head: short texts, where everything is near.
    assert role(numbers(self=(0.5, 0.09, 0.9)), UNIFORM) == "mixed"


def test_heads_that_are_not_named_after_a_place() -> None:
    assert head_sentence(1, 3, numbers(0.95), UNIFORM) == (
        "Layer 1 head 3 spreads its attention: 3.8 bits of entropy, 95.0% [94.0, 96.0] of a "
        "uniform head's."
    )
    said = head_sentence(1, 3, numbers(elsewhere=(0.6, 0.6, 0.6)), UNIFORM)
    assert said.startswith("Layer 1 head 3 has no simple pattern: 10.0% to special tokens")
    assert said.endswith("60.0% to other tokens.")


def test_the_summary_counts_heads() -> None:
    length = 6
    heads = torch.zeros(3, length, length)
    for query in range(length):
        heads[0, query, max(query - 1, 0)] = 1
        heads[1, query, query] = 1
    heads[2] = 1 / length
    row = Tokens(tuple("abcdef"), (False,) * length)
    said = summary(analyse([AttentionMaps("encoder", heads[None], row, row)] * 2))
    assert said[0] == (
        "Of 3 heads 1 looks at the token itself, 1 looks at the previous token and 1 spreads its "
        "attention."
    )
    assert (
        "Layer 1 head 1 looks at the previous token: 83.3% [83.3, 83.3] of its attention (a "
        "uniform head: 13.9%)."
    ) in said
    assert any("No head looks mainly at the next token: the most is 13.9%" in line for line in said)
    assert "Mean entropy of a head is 0.86 bits (33.3% of the most possible)" in said[-2]


def sentence_maps(heads: torch.Tensor, labels: tuple[str, ...]) -> AttentionMaps:
    row = Tokens(labels, tuple(label.startswith("[") for label in labels))
    return AttentionMaps("encoder", heads[None].float(), row, row)


LABELS = ("[CLS]", *SENTENCE, "[SEP]")


def test_a_link_is_ranked_among_all_pairs() -> None:
    """A uniform head, and one in which 送 alone looks at 书: the only link there is."""
    heads = torch.full((2, 9, 9), 1 / 9)
    verb, book = LABELS.index("送"), LABELS.index("书")
    heads[1, verb] = 0
    heads[1, verb, book] = 1
    found = {(link.query, link.key): link for link in links(sentence_maps(heads, LABELS))}
    link = found["送", "书"]
    assert (link.layer, link.head, link.share, link.rank, link.pairs) == (1, 2, 1.0, 1, 42)
    assert link.by_others == pytest.approx(1 / 9)
    assert link.stands_out
    assert link.neighbours
    # 她 looks as in the uniform head, where others look at 送 no less: 送 itself is not counted.
    assert not found["她", "送"].stands_out
    said = sentence_findings(sentence_maps(heads, LABELS))
    assert any(
        line.startswith("送 → 书: strongest in layer 1 head 2, 100.0% (the other words there give")
        for line in said
    )
    assert any("1st of 42 pairs, it stands out; the two are neighbours" in line for line in said)
    assert "proves nothing" in said[-1]


def test_what_a_word_attends_to() -> None:
    heads = torch.full((1, 9, 9), 0.05)
    heads[0, :, 0] = 0.6
    [her, *_] = gazes(sentence_maps(heads, LABELS))
    assert (her.word, len(her.others)) == ("她", 6)
    assert (her.special, her.itself) == pytest.approx((0.65, 0.05))


def test_a_model_that_cannot_read_the_sentence_says_so() -> None:
    labels = ("他", "把 1/3", "把 2/3", "把 3/3", "书", "[UNK]", "给", "了", "她")
    maps = sentence_maps(torch.full((1, 9, 9), 1 / 9), labels)
    assert unread(maps) == ["把", "送"]
    [said] = sentence_findings(maps)
    assert said.startswith(f"Nothing can be said of {SENTENCE}: to this model's vocabulary 把, 送")
