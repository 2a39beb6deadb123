"""Settings and inputs that are rare but right."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest
import transformers
from safetensors.torch import load_file

Recipe = Callable[..., Any]


@pytest.fixture
def tune(run_recipe: Recipe, tiny_bert: Path, tmp_path: Path) -> Callable[..., Path]:
    def run(name: str, dataset: Path, *options: str) -> Path:
        finished = run_recipe(
            "bert_sentiment", "--dataset", dataset, "--model", tiny_bert, "--run-id", name, *options
        )
        assert finished.status == 0, finished.err
        return tmp_path / "results" / "runs" / "bert_sentiment" / name

    return run


def summary_of(run: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return summary


def test_bf16_computes_in_bf16_and_saves_float32(tune: Callable[..., Path], reviews: Path) -> None:
    run = tune("a", reviews, "--train.mixed-precision", "bf16", "--train.max-steps", "2")
    assert summary_of(run)["environment"]["precision"] == "bf16"
    weights = load_file(run / "model" / "model.safetensors")
    assert {str(value.dtype) for value in weights.values()} == {"torch.float32"}


def test_workers_change_nothing(tune: Callable[..., Path], reviews: Path) -> None:
    runs = [
        tune(f"workers{n}", reviews, "--train.workers", str(n), "--train.epochs", "1")
        for n in (0, 2)
    ]
    one, other = (load_file(run / "model" / "model.safetensors") for run in runs)
    assert all(value.equal(other[name]) for name, value in one.items())


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_a_decoder_that_has_no_padding_token_classifies_too(
    run_recipe: Recipe, tiny_bert: Path, reviews: Path, tmp_path: Path, implementation: str
) -> None:
    """GPT-2 reads the label off the last token that is no padding."""
    folder = tmp_path / "gpt2"
    config = transformers.GPT2Config(vocab_size=37, n_positions=32, n_embd=8, n_layer=1, n_head=2)
    transformers.GPT2Model(config).save_pretrained(folder)
    for name in ("vocab.txt", "tokenizer_config.json"):
        shutil.copy(tiny_bert / name, folder)
    finished = run_recipe(
        "bert_sentiment", "--dataset", reviews, "--model", folder, "--run-id", "a",
        "--train.max-steps", "2", "--implementation", implementation,
    )  # fmt: skip
    assert finished.status == 0, finished.err
    saved = tmp_path / "results/runs/bert_sentiment/a/model/config.json"
    assert json.loads(saved.read_text(encoding="utf-8"))["pad_token_id"] == 0


@pytest.mark.parametrize("method", ["full", "frozen"])
def test_a_file_of_twelve_rows_and_three_classes(
    tune: Callable[..., Path], tmp_path: Path, method: str
) -> None:
    lines = [
        f"{'好坏中'[i % 3]}{'酒店书本电脑东西'[i % 8]}{'早' * i},{i % 3 + 1}" for i in range(12)
    ]
    file = tmp_path / "stars.csv"
    file.write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    run = tune(method, file, "--method", method, "--train.epochs", "1")
    summary = summary_of(run)
    assert summary["data"]["label_names"] == ["1", "2", "3"]
    table = pandas.read_parquet(run / "predictions" / "test.parquet")
    assert len(table) == summary["data"]["test_examples"]
    assert all(len(row) == 3 for row in table["probabilities"])


def test_frozen_embeddings_stay_as_they_were(
    tune: Callable[..., Path], reviews: Path, tiny_bert: Path
) -> None:
    run = tune("a", reviews, "--freeze-layers", "0", "--train.max-steps", "5")
    before, after = (load_file(f / "model.safetensors") for f in (tiny_bert, run / "model"))
    for name, value in after.items():
        if "embeddings" in name:
            assert value.equal(before[name]), name
        elif "encoder" in name and name.endswith("dense.weight"):
            assert not value.equal(before[name]), name
    model = summary_of(run)["model"]
    embeddings = sum(v.numel() for name, v in after.items() if "embeddings" in name)
    assert model["parameters_total"] - model["parameters_trained"] == embeddings


def test_fewer_labels_keep_validation_and_test(tune: Callable[..., Path], reviews: Path) -> None:
    small, large = (
        summary_of(tune(size, reviews, "--train-size", size, "--train.max-steps", "1"))
        for size in ("20", "60")
    )
    assert small["data"]["train_examples"] == 20
    for split in ("validation", "test"):
        assert small["data"]["hashes"][split] == large["data"]["hashes"][split]
    assert small["data"]["hashes"]["train"] != large["data"]["hashes"]["train"]
