"""Same seed, same bits: twice, and with other processes preparing the batches."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

Settings = Callable[[str], tuple[object, ...]]
RANDOM = {
    "cifar10": ("--augmentation.mixup", "0.8", "--augmentation.cutmix", "1"),
    "image_classification": ("--augmentation.flip", "true", "--augmentation.erasing", "0.5"),
    "bert_pretraining": (
        "--shape.layers", "1", "--shape.hidden-size", "16", "--shape.heads", "2",
        "--shape.vocabulary", "200", "--train.log-every", "1",
    ),
    "token_classification": ("--unknown-share", "0.3"),
}  # fmt: skip
"""Besides the usual tiny settings: what their collators draw random numbers for."""


@pytest.fixture
def settings(tiny: Callable[..., Any], tmp_path: Path) -> Settings:
    """All but the name of the run."""

    def of(recipe: str) -> tuple[object, ...]:
        if recipe == "bert_pretraining":
            return ("--dataset", write_documents(tmp_path / "texts.txt"), *RANDOM[recipe])
        usual = list(tiny(recipe, dropout=0.1))
        name = usual.index("--run-id")
        return (*usual[:name], *usual[name + 2 :], *RANDOM[recipe])

    return of


def write_documents(file: Path) -> Path:
    generator = random.Random(0)
    sentences = ["".join(generator.choices("酒店房间服务早餐书本", k=6)) for _ in range(480)]
    lines = ["。".join(sentences[place : place + 3]) + "。" for place in range(0, 480, 3)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def losses(run: Path) -> list[float]:
    """Of every step."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text("utf-8").splitlines())
    return [line["loss"] for line in lines if "loss" in line]


@pytest.mark.parametrize("recipe", [
    "cifar10",
    pytest.param("image_classification", marks=pytest.mark.slow),
    pytest.param("bert_pretraining", marks=pytest.mark.slow),
    pytest.param("token_classification", marks=pytest.mark.slow),
])  # fmt: skip
def test_the_same_seed_gives_the_same_bits(
    run_recipe: Callable[..., Any], settings: Settings, tmp_path: Path, recipe: str
) -> None:
    def train(name: str, workers: int) -> Path:
        finished = run_recipe(
            recipe, *settings(recipe), "--run-id", name, "--train.batch-size", "16",
            "--train.max-steps", "8", "--output-dir", tmp_path, "--train.workers", workers,
        )  # fmt: skip
        assert finished.status == 0, finished.err
        return tmp_path / recipe / name

    first = train("first", workers=0)
    weights = load_file(first / "model" / "model.safetensors")
    assert len(losses(first)) == 8
    for run in (train("workers", workers=2), train("again", workers=2)):
        assert losses(run) == losses(first)
        others = load_file(run / "model" / "model.safetensors")
        assert weights.keys() == others.keys()
        for name, value in weights.items():
            assert value.equal(others[name]), name
