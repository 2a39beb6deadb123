"""Sums over sentences give sacrebleu's corpus scores, for one run and for many sums at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from toolkit.errors import UserError
from toolkit.task_scores.predictions import Predictions, objects
from toolkit.task_scores.text_statistics import (
    BleuStatistics,
    ChrfStatistics,
    bleu_of_sums,
    chrf_of_sums,
)
from toolkit.task_scores.translation import read, view
from toolkit.text_metrics import bleu, chrf, exact_match

WORD = st.sampled_from(["the", "Cat", "sat", "on", "a", "mat.", "它", "坐在", "垫子上", "A1,"])
TEXT = st.lists(WORD, max_size=9).map(" ".join)
PAIRS = st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=6)
LANGUAGES = st.sampled_from(["en", "zh"])


def summary(language: str) -> dict[str, Any]:
    return {"data": {"target_language": language}}


def predictions(rows: list[tuple[str, str]], **fields: Any) -> Predictions:
    return Predictions(
        ids=[f"{row}" for row in range(len(rows))],
        inputs=["x" * (row + 1) for row in range(len(rows))],
        images=None,
        truth=[reference for _, reference in rows],
        fields={"hypothesis": objects([text for text, _ in rows]), **fields},
    )


@settings(max_examples=60)
@given(PAIRS, LANGUAGES)
def test_sums_give_the_scores_that_a_summary_records(
    rows: list[tuple[str, str, str]], language: str
) -> None:
    systems = [[(row[which], row[2]) for row in rows] for which in (0, 1)]
    shown = view("translation", list(map(predictions, systems)), [summary(language)] * 2)
    references = [row[2] for row in rows]
    for place, system in enumerate(systems):
        texts = [text for text, _ in system]
        recorded = {
            "bleu": bleu(texts, references, language, draws=1),
            "bleu_lowercase": bleu(texts, references, language, lowercase=True, draws=1),
            "chrf": chrf(texts, references, draws=1),
            "exact_match": exact_match(texts, references),
        }
        assert [measure.key for measure in shown.measures] == [
            "bleu", "chrf", "exact_match", "bleu_lowercase",
        ]  # fmt: skip
        for measure in shown.measures:
            value = float(measure.score(shown.statistics(measure.key, place).sum(0)))
            expected = recorded[measure.key]["value"]
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-12), measure.key


def odd_texts(number: int) -> tuple[list[str], list[str]]:
    """Short texts of few characters, so that n-grams repeat, with what is lost at the ends."""
    generator = np.random.default_rng(number)
    characters = list("ab aA 是是不了。，.,1")
    lengths = generator.integers(0, 14, (2, number))
    hypotheses, references = (
        ["".join(generator.choice(characters, length)) for length in row] for row in lengths
    )
    whole = ["the cat sat on the mat.", "yes, it is.", "", "  ", "no", "𠀀 字"]
    return [*hypotheses, *whole], [*references, *whole[:3], "x", "", "𠀀字"]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("tokenize", ["13a", "zh", "char"])
def test_bleu_statistics_are_sacrebleus(tokenize: str, lowercase: bool) -> None:
    hypotheses, references = odd_texts(400)
    metric = BLEU(tokenize=tokenize, lowercase=lowercase)
    counts = BleuStatistics(metric, references)(hypotheses)
    for row, (text, reference) in enumerate(zip(hypotheses, references, strict=True)):
        assert metric._extract_corpus_statistics([text], [[reference]]) == [counts[row].tolist()]
    expected = metric.corpus_score(hypotheses, [references]).score
    assert float(bleu_of_sums(counts.sum(0))) == pytest.approx(expected, rel=1e-12)
    assert 0 < expected < 100


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.lists(
            st.sampled_from(
                [
                    *"aBÜİΣςßé.,'-19中。 \n",
                    "&",
                    "&QUOT;",
                    "&quot;",
                    "<",
                    "<SKIPPED>",
                    "Ⅷ",
                    "ΑΣ",
                    "\u212a",
                    "\u212b",
                    "\u2126",
                ]
            ),
            max_size=12,
        ).map("".join),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(["13a", "zh", "none", "char", "intl"]),
)
def test_words_in_lower_case_are_sacrebleus(texts: list[str], tokenize: str) -> None:
    cased = BleuStatistics(BLEU(tokenize=tokenize), texts)
    lower = BleuStatistics(BLEU(tokenize=tokenize, lowercase=True), texts)
    assert lower.words_in_lower_case(texts, cased.words(texts)) == lower.words(texts)


def test_chrf_statistics_are_sacrebleus() -> None:
    hypotheses, references = odd_texts(400)
    counts = ChrfStatistics(references)(hypotheses)
    metric = CHRF()
    for row, (text, reference) in enumerate(zip(hypotheses, references, strict=True)):
        assert metric._extract_corpus_statistics([text], [[reference]]) == [counts[row].tolist()]
    expected = metric.corpus_score(hypotheses, [references]).score
    assert float(chrf_of_sums(counts.sum(0))) == pytest.approx(expected, rel=1e-12)
    assert 0 < expected < 100


def test_statistics_of_nothing() -> None:
    for statistics in (BleuStatistics(BLEU(), ["", ""]), ChrfStatistics(["", ""])):
        counts = statistics(["", "a b"])
        assert counts[0].tolist() == [0.0] * counts.shape[1]
        assert counts[1].sum() == (2 + 2 + 1 if counts.shape[1] == 10 else 0)


def bleu_counts(generator: np.random.Generator) -> list[int]:
    """Lengths, matches of order 1 to 4 (often none), and n-grams (none of the higher orders)."""
    made, expected = generator.integers(0, 12, 2)
    total = np.maximum(made - np.arange(4) * generator.integers(1, 3), 0)
    right = generator.integers(0, total + 1) * (generator.random(4) < 0.7)
    return [int(count) for count in (made, expected, *right, *total)]


def test_bleu_is_sacrebleus_for_any_sums() -> None:
    generator = np.random.default_rng(0)
    counts = np.array([bleu_counts(generator) for _ in range(1200)])
    expected = np.array(
        [
            BLEU.compute_bleu(
                row[2:6].tolist(), row[6:].tolist(), int(row[0]), int(row[1]), "exp"
            ).score
            for row in counts
        ]
    )
    found = bleu_of_sums(counts.astype(float).reshape(4, 30, 10, 10)).ravel()
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
    # All that the formula tells apart is there: none, smoothed ones, brevity penalty.
    smoothed = (counts[:, 5] == 0) & (expected > 0)
    assert min((expected == 0).sum(), smoothed.sum(), (expected > 50).sum()) > 20
    assert ((counts[:, 0] < counts[:, 1]) & (expected > 0)).sum() > 20


def test_chrf_is_sacrebleus_for_any_sums() -> None:
    generator = np.random.default_rng(0)
    made, expected = generator.integers(0, 6, (2, 1200, 6)) * (generator.random((2, 1200, 6)) < 0.8)
    right = generator.integers(0, np.minimum(made, expected) + 1)
    counts = np.stack([made, expected, right], axis=-1).reshape(1200, 18)
    metric = CHRF()
    scores = np.array([metric._compute_f_score(row.tolist()) for row in counts])
    found = chrf_of_sums(counts.astype(float).reshape(3, 400, 18)).ravel()
    assert found == pytest.approx(scores, rel=1e-12, abs=1e-12)
    assert min((scores == 0).sum(), (scores > 0).sum()) > 10


def test_sentences_by_hand() -> None:
    rows = [("今天", "今天"), ("今天", "明天"), ("今天", "五点")]
    runs = [
        predictions(rows, loss=np.array([0.1, 0.2, 3.0])),
        predictions([("去", reference) for _, reference in rows]),
    ]
    shown = view("translation", runs, [summary("zh-CN")] * 2)
    # "明天": one of two characters, no pair: precision and recall are the mean of 1/2 and 0.
    assert shown.quality[0] == pytest.approx([100, 25, 0])
    assert shown.right is not None
    assert shown.right.tolist() == [[True, False, False], [False] * 3]
    assert shown.loss is not None
    assert shown.loss[0].tolist() == [0.1, 0.2, 3.0]
    assert np.isnan(shown.loss[1]).all()
    assert shown.answers[0] == ["今天"] * 3
    assert shown.truth == ["今天", "明天", "五点"]
    assert shown.single_answers == {0: "今天", 1: "去"}
    assert shown.facts == [
        "BLEU splits the texts by sacrebleu's rules 'zh' (target language zh-CN)."
    ]
    [by_length] = shown.breakdowns
    assert by_length.names == ["1", "2", "3"]
    assert by_length.values.shape == (3, 2)


def test_parts_are_corpora_of_their_own() -> None:
    """BLEU of a part is that of its sentences, not a mean over sentences."""
    rows = [
        ("the cat sat on the mat today", "the cat sat on the mat"),
        ("a dog ran", "the dog ran away"),
        ("he said so yesterday again", "he said so yesterday"),
        ("nothing like it at all", "something else is here"),
    ]
    source = ["x", "x", "xx", "xx"]
    made = predictions(rows)
    shown = view("translation", [Predictions(made.ids, source, None, made.truth, made.fields)],
                 [summary("en")])  # fmt: skip
    [by_length] = shown.breakdowns
    for place, part in enumerate((rows[:2], rows[2:])):
        texts, references = zip(*part, strict=True)
        expected = bleu(texts, references, "en", draws=1)["value"]
        assert by_length.values[place, 0] == pytest.approx(expected)
    assert by_length.examples == [2, 2]


def write(folder: Path, **columns: Any) -> Path:
    path = folder / "run" / "predictions" / "test.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {"id": ["a", "b"], "source": ["x", "y"], "reference": ["u", "v"],
             "hypothesis": ["u", ""], "loss": [0.5, 1.5]}  # fmt: skip
    kept = {name: value for name, value in (table | columns).items() if value is not None}
    pyarrow.parquet.write_table(pyarrow.table(kept), path)
    return path


def test_files_are_read(tmp_path: Path) -> None:
    found = read(write(tmp_path), summary("zh"))
    assert (found.ids, found.inputs, found.truth) == (["a", "b"], ["x", "y"], ["u", "v"])
    assert found.fields["hypothesis"].tolist() == ["u", ""]
    assert found.fields["loss"].tolist() == [0.5, 1.5]
    assert "loss" not in read(write(tmp_path, loss=None), summary("zh")).fields


@pytest.mark.parametrize(
    ("columns", "language", "expected"),
    [
        ({"hypothesis": [1, 2]}, "zh", "'hypothesis' holds int64, expected texts"),
        ({"reference": ["u", None]}, "zh", "row 1: 'reference' is empty"),
        ({"loss": [0.5, np.nan]}, "zh", "row 1: 'loss' is nan"),
        ({}, None, "'data.target_language' is None"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, columns: dict[str, Any], language: Any, expected: str
) -> None:
    path = write(tmp_path, **columns)
    with pytest.raises(UserError) as raised:
        read(path, summary(language))
    assert str(path.parent.parent) in str(raised.value)
    assert expected in str(raised.value)
