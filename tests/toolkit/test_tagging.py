"""Token classification: sums over words, and predictions put together again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from torch.nn import functional as F

from toolkit.errors import UserError
from toolkit.ignored_label import IGNORED
from toolkit.tagging import EntityMetric, SentenceTags, TokenClassification

NAMES = ["O", "B-A", "I-A"]


class FixedLogits(torch.nn.Module):
    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, input_ids: torch.Tensor) -> Any:
        return SimpleNamespace(logits=self.logits)


def test_loss_and_predictions_are_of_the_labelled_words() -> None:
    labels = torch.tensor([[IGNORED, 0, IGNORED, 2, 1], [IGNORED, 1, IGNORED, IGNORED, IGNORED]])
    logits = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    batch = {"input_ids": torch.ones(2, 5), "labels": labels, "index": torch.tensor([0, 1])}
    objective = TokenClassification(7)
    counted = labels != IGNORED
    expected = F.cross_entropy(logits[counted], labels[counted], reduction="sum")
    assert objective.count(batch) == [4]
    assert objective.loss(FixedLogits(logits), batch).item() == pytest.approx(expected.item())
    outputs = objective.outputs(FixedLogits(logits), batch)
    assert outputs["loss"].sum().item() == pytest.approx(expected.item())
    # Smoothed by hand, in training alone: 0.7 of the label, 0.3 spread over all three tags.
    smoothed, logs = TokenClassification(7, 0.3), logits[counted].log_softmax(-1)
    targets = 0.7 * F.one_hot(labels[counted], 3) + 0.1
    by_hand = -(targets * logs).sum().item()
    assert smoothed.loss(FixedLogits(logits), batch).item() == pytest.approx(by_hand, rel=1e-6)
    plain = smoothed.outputs(FixedLogits(logits), batch)["loss"].sum().item()
    assert plain == pytest.approx(expected.item())
    with pytest.raises(UserError, match="label_smoothing 2"):
        TokenClassification(7, 2)
    best = logits.argmax(-1)
    assert outputs["predictions"].tolist() == [
        [*best[0, [1, 3, 4]].tolist(), *[IGNORED] * 4], [int(best[1, 1]), *[IGNORED] * 6],
    ]  # fmt: skip


def rows_and_windows() -> tuple[Any, Any]:
    rows = datasets.Dataset.from_dict({"tags": [["B-A", "I-A", "O", "B-A"], ["O"]]})
    windows = datasets.Dataset.from_dict({"sentence": [0, 0, 1], "words": [[0, 1], [2, 3], [0]]})
    return rows, windows


def outputs(predictions: list[list[int]]) -> dict[str, np.ndarray]:
    return {"predictions": np.array(predictions), "loss": np.array([1.0, 2.0, 2.0])}


def test_predictions_of_windows_become_those_of_sentences() -> None:
    tags = SentenceTags(*rows_and_windows(), NAMES)
    found = outputs([[1, 2, IGNORED], [0, 0, IGNORED], [1, IGNORED, IGNORED]])
    assert tags(found) == [["B-A", "I-A", "O", "O"], ["B-A"]]
    values = EntityMetric(tags)(found)  # one of two found, one of two predicted right
    assert values == {"entity_f1": 0.5, "precision": 0.5, "recall": 0.5, "loss": 1.0}


def test_a_word_without_a_prediction_or_with_two_is_an_error_of_ours() -> None:
    rows, windows = rows_and_windows()
    found = outputs([[1, 2, IGNORED], [0, 0, IGNORED], [1, IGNORED, IGNORED]])
    with pytest.raises(RuntimeError, match="not every token"):
        SentenceTags(datasets.Dataset.from_dict({"tags": [["O"] * 5, ["O"]]}), windows, NAMES)(
            found
        )
    twice = datasets.Dataset.from_dict({"sentence": [0, 0, 1], "words": [[0, 1], [1, 3], [0]]})
    with pytest.raises(RuntimeError, match="twice"):
        SentenceTags(rows, twice, NAMES)(found)
