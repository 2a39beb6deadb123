"""Where two files part by the lengths of their lines, and which pairs stand out."""

import random
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.line_lengths import first_unmatched, unusual_pairs

LENGTHS = st.lists(st.integers(0, 60), min_size=1, max_size=7)


def cost(longer, shorter, skipped):
    kept = [length for place, length in enumerate(longer) if place not in skipped]
    ratio = sum(shorter) / sum(longer)
    pairs = zip(kept, shorter, strict=True)
    return sum(abs(np.log((b + 3) / (a * ratio + 3))) for a, b in pairs)


@given(LENGTHS, LENGTHS)
def test_the_best_of_all_ways_to_leave_lines_out(some, others):
    shorter, longer = sorted((some, others), key=len)
    if len(longer) == len(shorter) or not sum(shorter):
        return
    missing = len(longer) - len(shorter)
    costs = {
        skipped: cost(longer, shorter, skipped)
        for skipped in combinations(range(len(longer)), missing)
    }
    found = first_unmatched(longer, shorter)
    if found is None:
        ends = max(
            cost(longer, shorter, range(missing)),
            cost(longer, shorter, range(len(shorter), len(longer))),
        )
        assert ends - min(costs.values()) < 0.5 + 1e-9
    else:
        best = min(value for skipped, value in costs.items() if skipped[0] == found)
        assert best <= min(costs.values()) + 1e-9


def test_a_missing_line_is_found_among_many():
    generator = random.Random(0)
    longer = [generator.randint(3, 80) for _ in range(500)]
    shorter = [3 * length for length in longer]
    del shorter[311]
    assert first_unmatched(longer, shorter) == 311
    assert first_unmatched(longer, shorter[:300]) is not None


def test_lengths_that_say_nothing_name_no_line():
    assert first_unmatched([5] * 9, [15] * 8) is None
    assert first_unmatched([5, 5], []) is None
    assert first_unmatched([0, 0], [0]) is None


def test_pairs_of_unusual_lengths():
    sources = [10, 20, 30, 40, 50, 60, 12, 45]
    targets = [31, 58, 92, 120, 151, 12, 36, 130]
    assert unusual_pairs(sources, targets) == [5]
    assert unusual_pairs([4, 9], [12, 27]) == []
    assert unusual_pairs([], []) == []
