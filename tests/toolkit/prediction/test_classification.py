"""Texts labelled: equal to transformers' pipeline, each row once, whatever the rows are."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    pipeline,
)

from toolkit.errors import UserError
from toolkit.prediction import Options, Predictor, open_model, predict

from .conftest import LETTERS


def some_texts(count: int = 40) -> list[str]:
    generator = random.Random(0)
    return ["".join(generator.choices(LETTERS, k=generator.randint(0, 60))) for _ in range(count)]


@pytest.fixture(scope="module")
def model(classifier: Path) -> Predictor:
    return open_model(str(classifier), Options(batch_size=7))


def by_pipeline(folder: Path, inputs: list[Any], limit: int = 32) -> list[dict[str, float]]:
    """What HuggingFace says, one row at a time: every label's probability."""
    classify = pipeline(
        "text-classification",
        model=AutoModelForSequenceClassification.from_pretrained(folder),
        tokenizer=AutoTokenizer.from_pretrained(folder),
    )
    how: dict[str, Any] = {"top_k": None, "truncation": True, "max_length": limit}
    found = [classify(text, **how) for text in inputs]
    return [{one["label"]: one["score"] for one in scores} for scores in found]


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_probabilities_are_those_of_the_pipeline(classifier: Path, implementation: str) -> None:
    texts = some_texts()
    made = predict(open_model(str(classifier), Options(implementation=implementation)), texts)
    expected = by_pipeline(classifier, texts)
    for answer, scores in zip(made.answers, expected, strict=True):
        assert answer["probabilities"] == pytest.approx(scores, abs=1e-6)
        assert answer["prediction"] == max(scores, key=scores.__getitem__)
        assert answer["probability"] == pytest.approx(max(scores.values()), abs=1e-6)
    assert len({answer["prediction"] for answer in made.answers}) > 1


def test_what_is_cut_and_what_shows_nothing_is_noted(model: Predictor) -> None:
    answers = predict(model, ["好" * 30, "好" * 31, "", "　 \u200b"]).answers
    notes = [answer.get("prediction_note") for answer in answers]
    assert notes == [None, "cut from 33 to 32 tokens", "no text", "no text"]
    assert answers[1]["probabilities"] == pytest.approx(answers[0]["probabilities"])


def test_a_shorter_limit_is_kept(classifier: Path) -> None:
    answers = predict(open_model(str(classifier), Options(max_length=8)), some_texts()).answers
    expected = by_pipeline(classifier, some_texts(), limit=8)
    for answer, scores in zip(answers, expected, strict=True):
        assert answer["probabilities"] == pytest.approx(scores, abs=1e-6)


def test_pairs(classifier: Path) -> None:
    pairs = list(zip(some_texts(), reversed(some_texts()), strict=True))
    made = predict(open_model(str(classifier)), pairs)
    expected = by_pipeline(classifier, [{"text": a, "text_pair": b} for a, b in pairs])
    for answer, scores in zip(made.answers, expected, strict=True):
        assert answer["probabilities"] == pytest.approx(scores, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.just(""), st.just("　"), st.text(LETTERS, max_size=40)), max_size=30))
def test_every_row_is_answered_in_its_place(model: Predictor, rows: list[str]) -> None:
    answers = predict(model, rows).answers
    assert len(answers) == len(rows)
    alone: dict[str, Any] = {}
    for row in rows:
        if row not in alone:
            [alone[row]] = predict(model, [row]).answers
    for row, answer in zip(rows, answers, strict=True):
        assert answer["probabilities"] == pytest.approx(alone[row]["probabilities"], abs=1e-6)


def test_more_rows_than_a_chunk(model: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = some_texts(25)
    whole = predict(model, texts).answers
    monkeypatch.setattr("toolkit.prediction.session.CHUNK", 8)
    for one, other in zip(predict(model, texts).answers, whole, strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {"problem_type": "multi_label_classification"},
        {"num_labels": 1},
        {"num_labels": 1, "problem_type": "regression"},
    ],
)
def test_labels_that_exclude_nothing_and_numbers(
    write_tiny_bert: Callable[..., Path], tmp_path: Path, changes: dict[str, Any]
) -> None:
    folder = write_tiny_bert(tmp_path / "model", "BertForSequenceClassification", **changes)
    answers = predict(open_model(str(folder)), some_texts(5)).answers
    expected = by_pipeline(folder, some_texts(5))
    for answer, scores in zip(answers, expected, strict=True):
        if "problem_type" in changes and "num_labels" in changes:
            assert answer["prediction"] == pytest.approx(scores["LABEL_0"], abs=1e-6)
            assert "probabilities" not in answer
        else:
            assert answer["probabilities"] == pytest.approx(scores, abs=1e-6)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("BertModel", "was saved as BertModel: no classifier"),
        ("BertForMaskedLM", "was saved as BertForMaskedLM: no classifier"),
        ("BertForPreTraining", "no classifier"),
    ],
)
def test_a_model_that_predicts_nothing(
    write_tiny_bert: Callable[..., Path], tmp_path: Path, head: str, message: str
) -> None:
    folder = write_tiny_bert(tmp_path / "model", head)
    with pytest.raises(UserError, match=message):
        open_model(str(folder))


def test_a_classifier_without_weights_is_refused(
    write_tiny_bert: Callable[..., Path], tmp_path: Path
) -> None:
    folder = write_tiny_bert(tmp_path / "model", "BertModel")
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = ["BertForSequenceClassification"]
    BertConfig(**config).save_pretrained(folder)
    with pytest.raises(UserError, match="have nothing for classifier"):
        open_model(str(folder))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(beams=3), "--beams is for translation"),
        (Options(batch_size=0), "batch-size"),
        (Options(max_length=2), "leaves no room"),
        (Options(device="cuda:7"), "--device cuda:7: not available"),
        (Options(device="tpu"), "--device tpu: not available"),
    ],
)
def test_options_that_cannot_be(classifier: Path, options: Options, message: str) -> None:
    with pytest.raises(UserError, match=message):
        open_model(str(classifier), options)
