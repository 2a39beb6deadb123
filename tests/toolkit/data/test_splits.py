"""Splits: any labels, any repetitions."""

import hashlib
import json
from collections import Counter, defaultdict
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.splits import (
    Labelled,
    find_overlap,
    is_blank,
    normalized,
    repetitions,
    split_hash,
    stratified_order,
    take,
)


def labelled(texts, labels):
    return Labelled(texts, list(map(normalized, texts)), list(labels))


LABELLED = st.lists(st.tuples(st.text("好坏ab ", max_size=3), st.sampled_from("xyz")), min_size=1)


@given(rows=LABELLED, seed=st.integers(0, 9))
def test_order_holds_every_row_once_and_equal_texts_together(rows, seed):
    texts, labels = zip(*rows, strict=True)
    own_keys = list(map(normalized, texts))
    groups = stratified_order(own_keys, labels, seed)
    assert sorted(row for group in groups for row in group) == list(range(len(rows)))
    keys = [{own_keys[row] for row in group} for group in groups]
    assert all(len(key) == 1 for key in keys)
    assert len(set.union(*keys)) == len(groups)


@given(counts=st.lists(st.integers(1, 60), min_size=2, max_size=4), seed=st.integers(0, 9))
def test_every_prefix_has_the_classes_in_proportion(counts, seed):
    labels = [str(c) for c, count in enumerate(counts) for _ in range(count)]
    order = [
        group[0] for group in stratified_order([str(i) for i in range(len(labels))], labels, seed)
    ]
    for size in range(1, len(order) + 1):
        found = Counter(labels[row] for row in order[:size])
        for c, count in enumerate(counts):
            assert abs(found[str(c)] - count * size / len(labels)) <= len(counts)


@given(rows=LABELLED, seed=st.integers(0, 3), data=st.data())
def test_order_does_not_depend_on_the_order_of_rows(rows, seed, data):
    shuffled = data.draw(st.permutations(rows))
    results = []
    for variant in (rows, shuffled):
        keys, labels = zip(*variant, strict=True)
        results.append([keys[group[0]] for group in stratified_order(keys, labels, seed)])
    assert results[0] == results[1]


def order_by_hand(keys, labels, seed):
    """The definition, group by group."""
    groups, classes, placed = defaultdict(list), defaultdict(list), []
    for row, key in enumerate(keys):
        groups[key].append(row)
    for key, rows in groups.items():
        digest = hashlib.blake2b(f"{seed}\n{key}".encode(), digest_size=16).digest()
        classes[min(labels[row] for row in rows)].append((digest, rows))
    for label, members in classes.items():
        first = 0.0 if len(members) >= 3 else 0.5
        for rank, (_, rows) in enumerate(sorted(members)):
            placed.append(((rank + first) / len(members), label, rows))
    return [rows for _, _, rows in sorted(placed)]


@given(rows=LABELLED, seed=st.integers(0, 9))
def test_order_is_its_definition(rows, seed):
    texts, labels = zip(*rows, strict=True)
    order = stratified_order(texts, labels, seed)
    expected = order_by_hand(texts, labels, seed)
    assert [*order] == expected
    assert order.flat() == [row for group in expected for row in group]
    assert [*order[1:3]] == expected[1:3]
    assert order[-1] == expected[-1]


def test_nothing_has_an_order():
    assert [*stratified_order([], [], 0)] == []


@given(sizes=st.lists(st.integers(1, 4), max_size=20), size=st.integers(0, 30))
def test_take_splits_the_groups_and_reaches_the_size_where_it_can(sizes, size):
    groups = [[index] * count for index, count in enumerate(sizes)]
    taken, remaining = take(groups, size)
    assert Counter(taken) + Counter(chain(*remaining)) == Counter(chain(*groups))
    assert len(taken) <= size
    assert not any(len(group) <= size - len(taken) for group in remaining)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("很好 ", "很好"),
        ("ＡＢＣ１２", "abc12"),
        ("a\u3000 b\n", "a b"),
        ("零\u200b宽\ufeff", "零宽"),
        ("Straße", "strasse"),
    ],
)
def test_normalized(text, same):
    assert normalized(text) == normalized(same) == same


def test_blank_texts_show_nothing():
    assert all(map(is_blank, ["", " ", "\u3000", "\u200b\ufeff", "\n\t\r"]))
    assert not any(map(is_blank, [".", "NA", "\u200ba", "😀"]))


def test_overlap_counts_held_out_rows_and_names_training_rows():
    overlap = find_overlap(
        labelled(["a", "b ", "c", "a"], "0001"), labelled(["a", "B", "d"], "010")
    )
    assert (overlap.exact, overlap.normalized, overlap.opposite_label) == (1, 2, 2)
    assert overlap.training_rows == {0, 1, 3}


def test_repetitions():
    assert repetitions(labelled(["a", "a", "A", "b"], "0100")) == {
        "exact": 1,
        "normalized": 2,
        "texts_with_several_labels": 1,
    }


def test_hash_changes_with_text_label_order_and_boundaries():
    hashes = [
        split_hash(texts, labels)
        for texts, labels in (
            (["a", "b"], ["0", "1"]),
            (["b", "a"], ["1", "0"]),
            (["a", "b"], ["0", "0"]),
            (["ab"], ["01"]),
            ([], []),
        )
    ]
    assert len(set(hashes)) == 5
    assert hashes[0] == split_hash(("a", "b"), ("0", "1"))
    assert len(hashes[0]) == 64


WORDS = st.text(max_size=8)


@given(rows=st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=5))
def test_hash_is_over_lines_of_json(rows):
    first, second, labels = ([row[i] for row in rows] for i in range(3))
    for contents in (first, list(zip(first, second, strict=True))):
        lines = [
            json.dumps([content, label], ensure_ascii=False) + "\n"
            for content, label in zip(contents, labels, strict=True)
        ]
        expected = hashlib.sha256("".join(lines).encode()).hexdigest()
        assert split_hash(contents, labels) == expected
