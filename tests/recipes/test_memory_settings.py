"""Settings and forecasts of memory in whole recipes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Recipe = Callable[..., Any]


def test_gradient_checkpointing_changes_no_loss(
    run_recipe: Recipe, tiny: Callable[..., tuple[object, ...]], tiny_recipe: str, tmp_path: Path
) -> None:
    losses = []
    for folder, option in (("plain", ()), ("saved", ("--train.gradient-checkpointing",))):
        finished = run_recipe(
            tiny_recipe, *tiny(tiny_recipe, 0.2), "--output-dir", folder, "--train.optimizer",
            "sgd", "--train.max-steps", "4", *option,
        )  # fmt: skip
        assert finished.status == 0, finished.err
        log = tmp_path / folder / tiny_recipe / "a/metrics.jsonl"
        lines = map(json.loads, log.read_text().splitlines())
        losses.append([line["loss"] for line in lines if "loss" in line])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)


def test_a_dry_run_of_every_recipe(
    run_recipe: Recipe, tiny: Callable[..., tuple[object, ...]], tiny_recipe: str, tmp_path: Path
) -> None:
    finished = run_recipe(tiny_recipe, *tiny(tiny_recipe, 0.1), "--dry-run-json", "-")
    assert finished.status == 0, finished.err
    found = json.loads(finished.out)
    assert found["recipe"] == tiny_recipe
    assert found["data"]["rows"]["train"] > 0
    assert found["steps"]["total"] > 0
    assert found["memory"]["activations_at_their_most_bytes"] > 0
    assert found["time"]["total_seconds"] > 0
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("recipe", "options", "expected"),
    [
        ("lstm_sentiment", (), "memory"),
        ("bert_sentiment", ("--method", "frozen"), "time"),
        ("tfidf_sentiment", (), "data"),
    ],
)
def test_a_dry_run_of_the_others(
    run_recipe: Recipe,
    reviews: Path,
    tiny_bert: Path,
    tmp_path: Path,
    recipe: str,
    options: tuple[str, ...],
    expected: str,
) -> None:
    model = ("--model", tiny_bert) if recipe == "bert_sentiment" else ()
    finished = run_recipe(recipe, "--dataset", reviews, *model, *options, "--dry-run-json", "-")
    assert finished.status == 0, finished.err
    found = json.loads(finished.out)
    assert sum(found["data"]["labels_in_train"].values()) == found["data"]["rows"]["train"]
    assert expected in found
    assert not (tmp_path / "results").exists()


def test_an_lstm_has_no_layers_to_compute_again(run_recipe: Recipe, reviews: Path) -> None:
    finished = run_recipe("lstm_sentiment", "--dataset", reviews, "--train.gradient-checkpointing")
    assert finished.status == 2
    assert "ScratchLSTMForSequenceClassification cannot compute its layers" in finished.error
