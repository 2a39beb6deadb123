"""Settings that every recipe has, seen through one of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from safetensors.torch import load_file

Recipe = Callable[..., Any]
SHORT = ("--train.max-steps", "3", "--train.batch-size", "8")


def test_a_learning_rate_is_looked_for_and_nothing_trained(
    run_recipe: Recipe, tiny_bert: Path, reviews: Path, tmp_path: Path
) -> None:
    finished = run_recipe(
        "bert_sentiment", "--dataset", reviews, "--model", tiny_bert, "--lr-finder", "--run-id",
        "a", "--train.batch-size", "16",
    )  # fmt: skip
    assert finished.status == 0, finished.err
    folder = tmp_path / "results/runs/bert_sentiment"
    assert [path.name for path in folder.iterdir()] == ["lr-finder-a"]
    found = json.loads((folder / "lr-finder-a/learning_rates.json").read_text())
    # A tenth of the best: a tiny model bears rates around 0.01 to 0.1.
    assert 5e-4 < found["suggestion"] < 2e-2
    assert f"--train.learning_rate {found['suggestion']:g}" in finished.out


def test_what_trains_without_steps_has_no_learning_rate(
    run_recipe: Recipe, tiny_bert: Path, reviews: Path, tmp_path: Path
) -> None:
    for recipe, *options in (
        ("tfidf_sentiment",),
        ("bert_sentiment", "--method", "frozen", "--model", tiny_bert),
    ):
        finished = run_recipe(recipe, "--dataset", reviews, "--lr-finder", *options)
        assert finished.status == 2
        assert "no learning rate to find" in finished.error
    assert not (tmp_path / "results").exists()


def test_layers_learn_at_their_own_rates(
    run_recipe: Recipe, exact_bert: Path, reviews: Path, tmp_path: Path
) -> None:
    """After one step of AdamW a weight has moved by its learning rate, whatever its gradient."""
    before = load_file(exact_bert / "model.safetensors")
    finished = run_recipe(
        "bert_sentiment", "--dataset", reviews, "--model", exact_bert, "--run-id", "a",
        "--train.max-steps", "1", "--train.warmup-ratio", "0", "--train.learning-rate", "0.001",
        "--train.layer-decay", "0.5", "--train.weight-decay", "0",
    )  # fmt: skip
    assert finished.status == 0, finished.err
    after = load_file(tmp_path / "results/runs/bert_sentiment/a/model/model.safetensors")
    layers = 1 + max(int(key.split("encoder.layer.")[1].split(".")[0])
                     for key in before if "encoder.layer." in key)  # fmt: skip
    seen = 0
    for key, value in after.items():
        old = before.get(key, before.get(key.removeprefix("bert.")))
        if old is None or "encoder.layer." not in key or "dense.weight" not in key:
            continue
        depth = int(key.split("encoder.layer.")[1].split(".")[0])
        moved = (value - old).abs()
        expected = 0.001 * 0.5 ** (layers - depth)
        assert torch.quantile(moved, 0.9).item() == pytest.approx(expected, rel=0.01), key
        seen += 1
    assert seen == 3 * layers


def test_flags_that_do_nothing_are_said(
    run_recipe: Recipe, tiny_bert: Path, reviews: Path, tmp_path: Path
) -> None:
    common = ("--dataset", reviews, "--model", tiny_bert, *SHORT)
    for method, given, said in (
        ("lora", ("--freeze-layers", "99"), "not used by lora: --freeze_layers"),
        ("full", ("--lora.rank", "4"), "not used by full: --lora.rank"),
        (
            "frozen", ("--label-smoothing", "0.5"),
            "not used by frozen: --label_smoothing, --train.batch_size, --train.max_steps",
        ),
        ("full", ("--freeze-layers", "1"), None),
    ):  # fmt: skip
        finished = run_recipe("bert_sentiment", *common, "--method", method, *given)
        assert finished.status == 0, finished.err
        warned = [line for line in finished.err.splitlines() if "not used by" in line]
        assert warned == ([f"warning: {said}"] if said else [])
    finished = run_recipe("tfidf_sentiment", "--dataset", reviews, "--train.ema", "0.9")
    assert "not used by TF-IDF: --train.ema" in finished.err


def test_a_dry_run_of_frozen_features_tries_a_batch(
    run_recipe: Recipe, tiny_bert: Path, reviews: Path, tmp_path: Path
) -> None:
    finished = run_recipe(
        "bert_sentiment", "--dataset", reviews, "--model", tiny_bert, "--method", "frozen",
        "--dry-run", "--train.eval-batch-size", "7",
    )  # fmt: skip
    assert finished.status == 0, finished.err
    assert "input_ids [7, " in finished.out
    assert "features [7, " in finished.out
    assert not (tmp_path / "results").exists()


def test_dora_is_a_method(
    run_recipe: Recipe, tiny_bert: Path, reviews: Path, tmp_path: Path
) -> None:
    finished = run_recipe(
        "bert_sentiment", "--dataset", reviews, "--model", tiny_bert, "--method", "dora",
        "--run-id", "a", *SHORT,
    )  # fmt: skip
    assert finished.status == 0, finished.err
    assert "DoRA on" in finished.err
    assert "FutureWarning" not in finished.err
    run = tmp_path / "results/runs/bert_sentiment/a"
    adapter = json.loads((run / "adapter/adapter_config.json").read_text())
    assert adapter["use_dora"] is True
    assert json.loads((run / "summary.json").read_text())["model"]["method"] == "dora"


@pytest.mark.slow
def test_smoothed_labels_are_recorded_and_make_answers_less_certain(
    run_recipe: Recipe, tiny_bert: Path, reviews: Path, tmp_path: Path
) -> None:
    certainty = []
    for smoothing in ("0", "0.6"):
        finished = run_recipe(
            "bert_sentiment", "--dataset", reviews, "--model", tiny_bert, "--run-id", smoothing,
            "--label-smoothing", smoothing, "--train.learning-rate", "0.01", "--train.epochs", "6",
            "--train.batch-size", "8",
        )  # fmt: skip
        assert finished.status == 0, finished.err
        run = tmp_path / "results/runs/bert_sentiment" / smoothing
        table = pandas.read_parquet(run / "predictions/test.parquet")
        certainty.append(np.stack(table["probabilities"]).max(1).mean())
        training = json.loads((run / "summary.json").read_text(encoding="utf-8"))["training"]
        assert training.get("label_smoothing", 0) == float(smoothing)
    # The best answer to labels smoothed by 0.6 is 0.7 and 0.3.
    assert certainty[0] > 0.85
    assert certainty[1] < 0.75


def test_an_lstm_that_was_trained_is_trained_further(
    run_recipe: Recipe, reviews: Path, tmp_path: Path
) -> None:
    first = run_recipe(
        "lstm_sentiment", "--dataset", reviews, "--run-id", "a", "--embedding-size", "8",
        "--hidden-size", "8", *SHORT,
    )  # fmt: skip
    assert first.status == 0, first.err
    folder = tmp_path / "results/runs/lstm_sentiment/a/model"
    finished = run_recipe(
        "bert_sentiment", "--dataset", reviews, "--model", folder, "--run-id", "b",
        "--train.learning-rate", "0", *SHORT,
    )  # fmt: skip
    assert finished.status == 0, finished.err
    run = tmp_path / "results/runs/bert_sentiment/b"
    one, other = (load_file(f / "model.safetensors") for f in (folder, run / "model"))
    assert all(value.equal(other[name]) for name, value in one.items())


def test_a_published_number_stands_in_the_summary_of_runs_on_its_data_alone(
    run_recipe: Recipe, reviews: Path, tmp_path: Path
) -> None:
    published = {
        "metric": "accuracy", "value": 0.9, "split": "test", "dataset": str(reviews),
        "setting": "a test", "source": "nowhere",
    }  # fmt: skip
    settings = tmp_path / "settings.json"  # which is YAML
    settings.write_text(json.dumps({"dataset": str(reviews), "published": published}))
    own = tmp_path / "own.csv"
    own.write_bytes(reviews.read_bytes())
    for name, options in (("same", ()), ("own", ("--dataset", own)), ("part", ("--test-size", 9))):
        finished = run_recipe("tfidf_sentiment", "--config", settings, "--run-id", name, *options)
        assert finished.status == 0, finished.err
        run = tmp_path / "results/runs/tfidf_sentiment" / name
        summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
        assert summary.get("published") == (published if name == "same" else None)
