"""Spans and answers: the best of all, by trying all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from toolkit.question_answering import (
    AnswerExtraction,
    AnswerMetric,
    Answers,
    AnswerTexts,
    best_spans,
)


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 12))
def test_best_spans_are_the_best_of_all_valid_ones(seed: int, length: int, longest: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    start, end = torch.randn(2, 3, length, generator=generator)
    possible = torch.zeros(3, length, dtype=torch.bool)
    for row in range(3):
        bounds = sorted(torch.randint(0, length + 1, (2,), generator=generator).tolist())
        possible[row, bounds[0] : bounds[1]] = True
    score, first, last = best_spans(start, end, possible, longest)
    for row in range(3):
        valid = [
            (float(start[row, i] + end[row, j]), i, j)
            for i in range(length)
            for j in range(i, min(i + longest, length))
            if possible[row, i] and possible[row, j]
        ]
        if not valid:
            assert score[row] == -torch.inf
        else:
            best = max(valid)
            assert (float(score[row]), int(first[row]), int(last[row])) == pytest.approx(best)


class FixedLogits(torch.nn.Module):
    def __init__(self, start: torch.Tensor, end: torch.Tensor) -> None:
        super().__init__()
        self.start, self.end = start, end

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        return SimpleNamespace(start_logits=self.start, end_logits=self.end)


def batch(labels: list[list[int]]) -> dict[str, torch.Tensor]:
    """[CLS] q [SEP] c c c [SEP] [PAD] twice."""
    context = torch.tensor([[0, 0, 0, 1, 1, 1, 0, 0]] * 2)
    return {
        "input_ids": torch.ones(2, 8, dtype=torch.long), "attention_mask": context,
        "context_mask": context, "context_start": torch.tensor([3, 3]),
        "labels": torch.tensor(labels), "index": torch.tensor([0, 1]),
    }  # fmt: skip


def test_loss_is_over_the_context_and_no_answer_alone() -> None:
    start, end = torch.randn(2, 2, 8, generator=torch.Generator().manual_seed(0))
    objective = AnswerExtraction(3)
    places = [0, 3, 4, 5]
    expected = torch.zeros(())
    for logits, labels in ((start, [1, 0]), (end, [3, 0])):  # among the four places
        expected += F.cross_entropy(logits[:, places], torch.tensor(labels), reduction="sum") / 2
    rows = batch([[3, 5], [0, 0]])
    assert objective.loss(FixedLogits(start, end), rows).item() == pytest.approx(expected.item())
    assert objective.count(rows) == [2]
    outputs = objective.outputs(FixedLogits(start, end), rows)
    assert outputs["loss"].sum().item() == pytest.approx(expected.item())
    assert torch.equal(outputs["none"], start[:, 0] + end[:, 0])
    assert (outputs["start"] >= 0).all()
    assert (outputs["end"] < 3).all()


def split(contexts: list[str], answers: list[list[str]]) -> Any:
    return datasets.Dataset.from_dict({"context": contexts, "answers": answers})


def test_the_best_window_of_a_question_answers_it() -> None:
    rows = split(["甲乙丙丁", "子丑"], [["丙丁"], []])
    windows = datasets.Dataset.from_dict(
        {
            "question": [0, 0, 1],
            "begins": [[0, 1], [2, 3], [0, 1]],
            "ends": [[1, 2], [3, 4], [1, 2]],
        }
    )
    outputs = {
        "score": np.array([1.0, 3.0, 2.0], dtype=np.float32), "start": np.array([0, 0, 1]),
        "end": np.array([1, 1, 1]), "none": np.array([4.0, -1.0, 2.5], dtype=np.float32),
        "loss": np.array([1.0, 2.0, 3.0]),
    }  # fmt: skip
    texts = AnswerTexts(rows, windows)
    found = texts(outputs)
    assert found.texts == ["丙丁", "丑"]
    assert found.margins.tolist() == [4.0, -0.5]
    metric = AnswerMetric(rows, texts, "zh")
    assert -0.5 <= metric.threshold(found) < 4.0
    assert metric(outputs) == {"exact_match": 1.0, "f1": 1.0, "loss": 2.0}


def test_answers_above_a_threshold() -> None:
    answers = Answers(["a", "b"], np.array([0.5, 0.7]))
    assert answers.above(0.5) == ["", "b"]
    assert answers.above(-np.inf) == ["a", "b"]


def test_windows_without_context_answer_nothing() -> None:
    windows = datasets.Dataset.from_dict({"question": [0], "begins": [[]], "ends": [[]]},
        features=datasets.Features({"question": datasets.Value("int64"),
                                    "begins": datasets.List(datasets.Value("int64")),
                                    "ends": datasets.List(datasets.Value("int64"))}))  # fmt: skip
    outputs = {"score": np.array([-np.inf]), "start": np.array([0]), "end": np.array([0]),
               "none": np.array([1.0])}  # fmt: skip
    found = AnswerTexts(split(["x"], [["x"]]), windows)(outputs)
    assert found.texts == [""]
    assert found.above(-np.inf) == [""]
