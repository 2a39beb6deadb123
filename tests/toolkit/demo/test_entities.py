"""The generated sentences: what is tagged are names, and names kept from training are unseen."""

from __future__ import annotations

import pytest

from toolkit.data.tag_schemes import read_spans
from toolkit.demo import entities
from toolkit.demo.entities import KINDS, SIZES, is_held_out, read_entities, read_names

Sentences = dict[str, list[entities.Sentence]]


@pytest.fixture(scope="module")
def splits() -> Sentences:
    return read_entities()


def names_of(sentences: list[entities.Sentence]) -> set[tuple[str, str]]:
    return {
        (span.kind, "".join(tokens[span.start : span.stop]))
        for tokens, tags in sentences
        for span in read_spans(tags)[0]
    }


def test_sentences_are_many_different_and_well_tagged(splits: Sentences) -> None:
    assert {split: len(rows) for split, rows in splits.items()} == SIZES
    texts = ["".join(tokens) for rows in splits.values() for tokens, _ in rows]
    assert len(set(texts)) == len(texts)
    for rows in splits.values():
        for tokens, tags in rows:
            assert len(tokens) == len(tags)
            assert all(len(token) == 1 for token in tokens)
            assert not read_spans(tags)[1]
        assert {kind for kind, _ in names_of(rows)} == set(KINDS)


def test_what_is_tagged_is_a_name_of_its_kind(splits: Sentences) -> None:
    for kind, name in names_of(splits["test"]):
        if kind == "DATE":
            assert any(mark in name for mark in ("月", "星期"))
        else:
            assert name in read_names(kind)


def test_training_shows_no_name_that_is_held_out(splits: Sentences) -> None:
    for kind, name in names_of(splits["train"]):
        assert kind == "DATE" or not is_held_out(name)
    known = {name for kind, name in names_of(splits["train"]) if kind != "DATE"}
    tested = [name for kind, name in names_of(splits["test"]) if kind != "DATE"]
    unseen = [name for name in tested if name not in known]
    assert 0.2 < len(unseen) / len(tested) < 0.6


def test_a_fifth_of_the_names_is_held_out() -> None:
    for kind in ("PLACE", "LANGUAGE", "CURRENCY"):
        names = read_names(kind)
        assert len(names) > 150
        assert 0.12 < sum(map(is_held_out, names)) / len(names) < 0.28
    assert {"法国", "德国"} <= set(read_names("PLACE"))
    assert "未知货币" not in read_names("CURRENCY")


def test_the_same_sentences_every_time(splits: Sentences) -> None:
    assert read_entities() == splits
