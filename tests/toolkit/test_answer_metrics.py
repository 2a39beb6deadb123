"""Answers compared by hand-computed values, and the threshold by trying all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.answer_metrics import (
    best_threshold,
    cmrc_segments,
    describe_answers,
    mean_draws,
    score_answer,
)


@pytest.mark.parametrize(
    ("language", "prediction", "answers", "exact", "f1"),
    [
        # SQuAD's rules: case, punctuation and articles do not count, word order neither.
        ("en", "The Eiffel Tower!", ["eiffel tower"], 1, 1),
        ("en", "tower of Eiffel", ["the Eiffel Tower"], 0, 2 * (2 / 3) * 1 / (2 / 3 + 1)),
        ("en", "in Paris, France", ["Paris"], 0, 2 * (1 / 3) * 1 / (1 / 3 + 1)),
        ("en", "Paris Paris", ["Paris"], 0, 2 * (1 / 2) * 1 / (1 / 2 + 1)),
        ("en", "London", ["Paris", "in London"], 0, 2 * 1 * (1 / 2) / (1 + 1 / 2)),
        ("en", "London", ["Paris", "London"], 1, 1),
        # CMRC2018's: characters, but only the longest run that both have.
        ("zh", "光荣和ω-force", ["光荣和ω-force"], 1, 1),
        ("zh", "《战国无双3》", ["战国无双3"], 1, 1),
        ("zh", "在北京大学", ["北京"], 0, 2 * (2 / 5) * 1 / (2 / 5 + 1)),
        ("zh", "北京和上海", ["上海和北京"], 0, 2 / 5),  # 北京 or 上海 or 和, not all five
        ("zh", "上海", ["北京"], 0, 0),
        ("zh", "2010年", ["2010年3月"], 0, 2 * 1 * (2 / 4) / (1 + 2 / 4)),
        ("zh", "任天堂游戏谜之村雨城", ["村雨城", "任天堂游戏谜之村雨城"], 1, 1),
        # Nothing to answer.
        ("zh", "", [], 1, 1),
        ("zh", "北京", [], 0, 0),
        ("en", "", ["Paris"], 0, 0),
        ("en", "the", [], 1, 1),
        ("en", "...", ["Paris"], 0, 0),
    ],
)
def test_scores_by_hand(
    language: str, prediction: str, answers: list[str], exact: float, f1: float
) -> None:
    assert score_answer(prediction, answers, language) == pytest.approx((exact, f1))


def test_segments_are_characters_and_words() -> None:
    assert cmrc_segments("光荣和ω-Force 2，2010年3.5万") == [
        "光",
        "荣",
        "和",
        "ωforce",
        "22010",
        "年",
        "3.5",
        "万",
    ]  # fmt: skip  (punctuation goes first: what it parted is one word)


SCORED = st.lists(
    st.tuples(st.integers(-4, 4), st.sampled_from([0.0, 0.5, 1.0]), st.booleans()), min_size=1
)


@given(SCORED)
def test_the_threshold_is_as_good_as_any(rows: list[tuple[int, float, bool]]) -> None:
    margins = np.array([float(margin) for margin, _, _ in rows])
    if_empty = np.array([float(empty) for _, _, empty in rows])
    if_answered = np.array([0.0 if empty else f1 for _, f1, empty in rows])

    def mean(threshold: float) -> float:
        return float(np.where(margins > threshold, if_answered, if_empty).mean())

    threshold = best_threshold(margins, if_answered, if_empty)
    if not if_empty.any():
        assert threshold == -np.inf
    every = [-np.inf, *(np.arange(-10, 11) / 2)]
    assert mean(threshold) == pytest.approx(max(map(mean, every)))


def test_described_with_intervals_and_parts() -> None:
    predictions = ["北京", "", "上海", "广州市"]
    answers = [["北京"], [], [], ["广州"]]
    described = describe_answers(predictions, answers, "zh", 0.5)
    assert described["exact_match"]["value"] == 0.5
    assert described["f1"]["value"] == pytest.approx((1 + 1 + 0 + 0.8) / 4)
    assert described["answerable"] == {"n": 2, "exact_match": 0.5, "f1": pytest.approx(0.9)}
    assert described["unanswerable"] == {"n": 2, "exact_match": 0.5, "f1": 0.5}
    assert described["no_answer_threshold"] == 0.5
    assert "CMRC2018" in described["f1"]["signature"]
    low, high = described["f1"]["interval"]
    assert 0 <= low < 0.7 < high <= 1


def test_draws_are_a_bootstrap_of_the_mean() -> None:
    values = np.random.default_rng(0).choice([0.0, 0.3, 1.0], 300)
    draws = mean_draws(values, 4000)
    assert draws.mean() == pytest.approx(values.mean(), abs=0.002)
    assert draws.std() == pytest.approx(values.std() / np.sqrt(300), rel=0.05)
