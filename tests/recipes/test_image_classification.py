"""Any images with any model: every method on a folder of pictures that differ in size."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file

Recipe = Callable[..., Any]
TRAINING = (
    "--train.epochs", "6", "--train.batch-size", "8", "--augmentation.crop-padding", "1",
    "--validation-size", "20", "--test-size", "20", "--train.evaluate-every", "20",
)  # fmt: skip


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes of 50 noisy pictures: reddish, or bluish."""
    generator = np.random.default_rng(0)
    folder = tmp_path / "photos"
    for number in range(100):
        height, width = generator.integers(12, 28, 2)
        pixels = generator.integers(0, 140, (height, width, 3))
        pixels[..., 0 if number % 2 else 2] += 100
        file = folder / ("red" if number % 2 else "blue") / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.astype(np.uint8)).save(file)
    return folder


@pytest.fixture
def tiny_vit(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny-vit"
    config = transformers.ViTConfig(
        image_size=16, patch_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=24, initializer_range=0.2,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.ViTModel(config).save_pretrained(folder)
    transformers.ViTImageProcessor(size={"height": 16, "width": 16}).save_pretrained(folder)
    return folder


def run_of(tmp_path: Path) -> tuple[Path, dict[str, Any], pandas.DataFrame]:
    run = tmp_path / "results/runs/image_classification/a"
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return run, summary, pandas.read_parquet(run / "predictions/test.parquet")


@pytest.mark.parametrize("method", ["full", "lora", "frozen"])
def test_a_pretrained_model_learns_a_folder_and_saves_what_it_learned(
    run_recipe: Recipe,
    use_run: Callable[..., str],
    tmp_path: Path,
    photos: Path,
    tiny_vit: Path,
    method: str,
) -> None:
    finished = run_recipe(
        "image_classification", "--dataset", photos, "--model", tiny_vit, "--method", method,
        "--run-id", "a", "--train.learning-rate", "0.01", "--lora.dropout", "0", *TRAINING,
    )  # fmt: skip
    assert finished.status == 0, finished.err
    run, summary, table = run_of(tmp_path)
    assert summary["data"]["label_names"] == ["blue", "red"]
    assert summary["test"]["accuracy"]["value"] >= 0.9
    trained, total = (summary["model"][f"parameters_{kind}"] for kind in ("trained", "total"))
    assert (trained == total) == (method == "full")
    assert "images" in (run / "README.md").read_text(encoding="utf-8")

    processor = transformers.AutoImageProcessor.from_pretrained(run / "model")
    pictures = [Image.open(place).convert("RGB") for place in table["image"]]
    pixels = processor(pictures, return_tensors="pt")
    with torch.no_grad():
        if method == "frozen":
            encoder = transformers.AutoModel.from_pretrained(run / "model").eval()
            features = encoder(**pixels).last_hidden_state[:, 0]
            classifier = load_file(run / "model/classifier.safetensors")
            features = torch.nn.functional.normalize(features)
            logits = features @ classifier["weight"].T + classifier["bias"]
        else:
            model = transformers.AutoModelForImageClassification.from_pretrained(run / "model")
            assert model.config.id2label == {0: "blue", 1: "red"}
            logits = model.eval()(**pixels).logits
    assert np.allclose(logits.softmax(-1), np.stack(table["probabilities"]), atol=1e-3)
    assert (run / "adapter").exists() == (method == "lora")

    shutil.copy(table["image"][0], run / "photo.jpg")
    numbers = re.findall(r"\d\.\d+(?:e-\d+)?", use_run(run))
    expected = max(table["probabilities"][0])
    assert min(abs(float(number) - expected) for number in numbers) < 1e-3


def test_a_new_model_from_a_table_of_paths_and_its_frozen_features(
    run_recipe: Recipe, use_run: Callable[..., str], tmp_path: Path, photos: Path
) -> None:
    lines = [f"photos/{file.parent.name}/{file.name},{file.parent.name}\n"
             for file in sorted(photos.glob("*/*.png"))]  # fmt: skip
    (tmp_path / "table.csv").write_text("image,label\n" + "".join(lines))
    finished = run_recipe(
        "image_classification", "--dataset", "table.csv", "--image-size", "16", "--method",
        "from_scratch", "--model", "resnet", "--resnet.widths", "[8, 16]", "--resnet.depths",
        "[1, 1]", "--run-id", "a", "--train.learning-rate", "0.01", *TRAINING,
    )  # fmt: skip
    assert finished.status == 0, finished.err
    _, summary, table = run_of(tmp_path)
    assert summary["test"]["accuracy"]["value"] >= 0.9
    assert table["image"].str.startswith("table.csv, line").all()

    resnet = (tmp_path / "results/runs/image_classification/a").rename(tmp_path / "resnet")
    finished = run_recipe(
        "image_classification", "--dataset", photos, "--model", resnet / "model", "--method",
        "frozen", "--run-id", "a", *TRAINING,
    )  # fmt: skip
    assert finished.status == 0, finished.err
    run, _, table = run_of(tmp_path)
    shutil.copy(table["image"][0], run / "photo.jpg")
    numbers = [float(n) for n in re.findall(r"\d\.\d+(?:e-\d+)?", use_run(run))]
    assert numbers == pytest.approx(list(table["probabilities"][0]), abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--method", "from_scratch"), "--model vit or resnet"),
        (("--model", "vit", "--method", "lora"), "--method from_scratch"),
        (("--method", "from_scratch", "--model", "vit"), "--image-size"),
    ],
)
def test_mistakes_are_told_in_one_line(
    run_recipe: Recipe, tmp_path: Path, photos: Path, arguments: tuple[str, ...], expected: str
) -> None:
    finished = run_recipe("image_classification", "--dataset", photos, *arguments)
    assert finished.status == 2
    assert expected in finished.err
    assert "Traceback" not in finished.err
    assert not (tmp_path / "results").exists()
