"""Perplexities of files of losses: those the run recorded, and what other tokens leave of them."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from toolkit.errors import UserError
from toolkit.language_modeling import describe_scores
from toolkit.task_scores.language import read, view

TEXTS = ["今天很好", "房间干净，服务也好。", "不", "再来"]
NLL = [11.5, 31.25, 2.75, 6.0]
TOKENS = [3, 9, 1, 2]
WORDS = [3, 9, 1, 1]
BYTES = [9, 27, 1, 3]


def write(folder: Path, name: str = "run", **columns: Any) -> Path:
    path = folder / name / "predictions" / "test.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {"id": list("abcd"), "text": TEXTS, "nll": NLL, "tokens": TOKENS, "words": WORDS,
             "bytes": BYTES}  # fmt: skip
    pyarrow.parquet.write_table(pyarrow.table(table | columns), path)
    return path


SUMMARY: dict[str, Any] = {"data": {"word": "character"}}


def test_sums_give_what_the_run_records(tmp_path: Path) -> None:
    split: Any = SimpleNamespace(
        tokens=[[0] * (count + 1) for count in TOKENS],
        words=np.array(WORDS),
        bytes=np.array(BYTES),
    )
    data: Any = SimpleNamespace(
        word="character", summary={"evaluation": {"window": 8, "stride": 4}}
    )
    recorded = describe_scores({"model": np.array(NLL)}, split, data)["model"]
    shown = view("language-modeling", [read(write(tmp_path), SUMMARY)], [SUMMARY])
    assert [measure.label for measure in shown.measures] == [
        "perplexity per token", "perplexity per character", "bits per byte",
    ]  # fmt: skip
    assert [measure.higher_is_better for measure in shown.measures] == [False] * 3
    for measure in shown.measures:
        value = float(measure.score(shown.statistics(measure.key, 0).sum(0)))
        assert value == pytest.approx(recorded[measure.key]["value"], rel=1e-12)
    total = sum(NLL)
    perplexity = shown.primary.score(shown.statistics("perplexity", 0).sum(0))
    assert float(perplexity) == pytest.approx(math.exp(total / 15))
    bits = shown.measures[2].score(shown.statistics("bits_per_byte", 0).sum(0))
    assert float(bits) == pytest.approx(total / math.log(2) / 40)


def test_documents_by_hand(tmp_path: Path) -> None:
    runs = [
        read(write(tmp_path), SUMMARY),
        read(write(tmp_path, "other", nll=[23.0, 30.0, 2.75, 4.0]), SUMMARY),
    ]
    unigram = {"yardsticks": {"test": {"unigram": {"value": 55.5, "n": 4}}}}
    shown = view("language-modeling", runs, [SUMMARY | unigram] * 2)
    assert shown.right is None
    assert shown.quality[0] == pytest.approx([-11.5 / 9, -31.25 / 27, -2.75, -2])
    assert (np.sign(shown.quality[0] - shown.quality[1])).tolist() == [1, -1, 0, -1]
    assert shown.answers[0][0] == f"perplexity {math.exp(11.5 / 3):.1f}"
    assert shown.truth == ["4 characters", "10 characters", "1 characters", "2 characters"]
    assert shown.facts == ["Scored: 15 tokens, which are 14 characters."]
    assert shown.chance == ("guessing by how often each token stands in training", 55.5)
    [by_length] = shown.breakdowns
    assert by_length.names == ["1", "2", "4", "10"]
    assert by_length.values[:, 0] == pytest.approx(
        [math.exp(2.75), math.exp(3), math.exp(11.5 / 3), math.exp(31.25 / 9)]
    )
    other = {"yardsticks": {"test": {"unigram": {"value": 50.0, "n": 4}}}}
    assert view("language-modeling", runs, [SUMMARY | unigram, SUMMARY | other]).chance is None
    part = [run.take([0, 1]) for run in runs]  # then what was recorded is of something else
    assert view("language-modeling", part, [SUMMARY | unigram] * 2).chance is None


def test_other_tokens_leave_perplexity_per_token_out(tmp_path: Path) -> None:
    other = read(write(tmp_path, "other", tokens=[2, 6, 1, 1], bytes=[9, 27, 2, 3]), SUMMARY)
    shown = view("language-modeling", [read(write(tmp_path), SUMMARY), other], [SUMMARY] * 2)
    assert [measure.key for measure in shown.measures] == ["word_perplexity", "bits_per_byte"]
    assert not any(measure.needs_same_tokens for measure in shown.measures)
    assert shown.breakdowns[0].measure.key == "word_perplexity"
    assert shown.answers[1][2] == f"{2.75 / math.log(2) / 2:.2f} bits per byte"
    assert any("per token is left out" in fact for fact in shown.facts)
    assert shown.chance is None
    # The truth is the same all the same.
    assert other.truth == read(write(tmp_path), SUMMARY).truth


def test_a_loss_beyond_floats_is_infinite(tmp_path: Path) -> None:
    run = read(write(tmp_path, nll=[1e6, 31.25, 2.75, 6.0]), SUMMARY)
    shown = view("language-modeling", [run], [SUMMARY])
    assert shown.primary.score(shown.statistics("perplexity", 0).sum(0)) == math.inf


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"nll": [11.5, math.nan, 2.0, 6.0]}, "row 1: 'nll' is nan"),
        ({"nll": [11.5, 2.0, math.inf, 6.0]}, "row 2: 'nll' is inf"),
        ({"tokens": [3, 9, -1, 2]}, "row 2: 'tokens' is -1, expected a whole number from 0 on"),
        ({"bytes": [3, 9.5, 1, 2]}, "row 1: 'bytes' is 9.5, expected a whole number"),
        ({"words": ["3", "9", "1", "2"]}, "'words' holds string, expected numbers"),
        ({"text": [1, 2, 3, 4]}, "'text' holds int64, expected texts"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, columns: dict[str, Any], expected: str) -> None:
    path = write(tmp_path, **columns)
    with pytest.raises(UserError) as raised:
        read(path, SUMMARY)
    assert str(path) in str(raised.value)
    assert expected in str(raised.value)
