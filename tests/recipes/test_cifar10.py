"""CIFAR-10's recipe on the digits: learned, compared, resumed, and used by plain transformers."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import transformers
from PIL import Image
from safetensors.torch import load_file

Recipe = Callable[..., Any]
DIGITS = ("--dataset", "demo:digits", "--augmentation.flip", "false")
QUICK = (
    *DIGITS, "--train.max-steps", "3", "--train.batch-size", "16", "--validation-size", "20",
    "--test-size", "30", "--vit.layers", "1", "--vit.hidden-size", "16", "--vit.heads", "2",
    "--resnet.widths", "[8, 8]", "--resnet.depths", "[1, 1]",
)  # fmt: skip


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    shared = tmp_path_factory.getbasetemp() / "image-cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared))


def summary_of(run: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return summary


def probabilities(answers: list[list[dict[str, Any]]]) -> np.ndarray:
    """Of a pipeline, in the order of the digits."""
    return np.array([[{a["label"]: a["score"] for a in answer}[str(digit)] for digit in range(10)]
                     for answer in answers])  # fmt: skip


def test_digits_are_learned_by_both_and_compared(
    run_recipe: Recipe, use_run: Callable[..., str], tmp_path: Path
) -> None:
    from sklearn.datasets import load_digits

    import scratch_models
    from toolkit.cli import main

    root = tmp_path / "results/runs/cifar10"
    for model, changes in (
        (
            "resnet",
            ("--resnet.widths", "[16, 32]", "--resnet.depths", "[1, 1]", "--train.epochs", "5"),
        ),
        ("vit", ("--train.epochs", "10", "--train.ema", "0.9")),
    ):
        finished = run_recipe(
            "cifar10", "--preset", "demo", "--model", model, "--run-id", model,
            "--train.evaluate-every", "38", *changes,
        )  # fmt: skip
        assert finished.status == 0, finished.err
        summary = summary_of(root / model)
        assert summary["task"] == "image-classification"
        assert summary["test"]["accuracy"]["value"] >= 0.9
        assert summary["test"]["accuracy"]["n"] == 450
        training = summary["training"]
        assert 0 < training["seconds_to_accuracy"]["0.5"] <= training["seconds_to_accuracy"]["0.9"]
        assert training["examples_per_second"] > 0
        assert "images per second" in finished.out
    with pytest.raises(SystemExit) as end:
        main(["compare", str(root / "resnet"), str(root / "vit"), "--output", "report"])
    assert end.value.code == 0
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert "450" in json.dumps(report)

    # The images themselves, to whoever opens the run with transformers.
    table = pandas.read_parquet(root / "vit/predictions/test.parquet").iloc[:12]
    assert list(table.columns) == ["id", "image", "label", "prediction", "probabilities", "loss"]
    given, files = load_digits().images, []
    for place in table["image"]:
        pixels = np.round(given[int(place.split()[-1]) - 1] * 255 / 16).astype(np.uint8)
        files.append(str(tmp_path / f"{len(files)}.png"))
        Image.fromarray(pixels).save(files[-1])
    folder = str(root / "vit/model")
    classify = transformers.pipeline("image-classification", model=folder, top_k=10)
    assert type(classify.model) is transformers.ViTForImageClassification
    answers = probabilities(classify(files))
    assert np.allclose(answers, np.stack(table["probabilities"]), atol=1e-4)

    table = pandas.read_parquet(root / "resnet/predictions/test.parquet").iloc[:12]
    scratch_models.enable()
    try:
        classify = transformers.pipeline(
            "image-classification", model=str(root / "resnet/model"), top_k=10
        )
        answers = probabilities(classify(files))
    finally:
        scratch_models.disable()
    assert np.allclose(answers, np.stack(table["probabilities"]), atol=1e-4)

    for model in ("resnet", "vit"):
        shutil.copy(files[0], root / model / "photo.jpg")
        best = ast.literal_eval(use_run(root / model))[0]
        table = pandas.read_parquet(root / model / "predictions/test.parquet")
        assert best["label"] == str(table["prediction"][0])
        assert best["score"] == pytest.approx(max(table["probabilities"][0]), abs=1e-4)


@pytest.mark.slow
def test_interrupted_and_resumed_with_every_augmentation(
    run_recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolkit.training import engine

    settings = (
        *QUICK, "--model", "resnet", "--train.max-steps", "9", "--train.evaluate-every", "4",
        "--train.ema", "0.9", "--train.log-every", "1", "--augmentation.randaugment", "2",
        "--augmentation.mixup", "0.8", "--augmentation.cutmix", "1", "--augmentation.erasing",
        "0.3", "--label-smoothing", "0.1", "--train-size", "60",
    )  # fmt: skip
    root = tmp_path / "results/runs/cifar10"
    assert run_recipe("cifar10", *settings, "--run-id", "whole").status == 0
    report = engine._report

    def interrupt(training: Any, *rest: Any) -> None:
        report(training, *rest)
        if training.state.step == 6:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(engine, "_report", interrupt)
        assert run_recipe("cifar10", *settings, "--run-id", "cut").status == 130
    assert run_recipe("cifar10", "--resume", root / "cut").status == 0
    one, other = (load_file(root / name / "model/model.safetensors") for name in ("whole", "cut"))
    assert all(value.equal(other[name]) for name, value in one.items())
    losses = [
        [json.loads(line).get("loss") for line in (root / name / "metrics.jsonl").open()]
        for name in ("whole", "cut")
    ]
    assert losses[0] == losses[1]
    assert summary_of(root / "whole")["test"] == summary_of(root / "cut")["test"]


@pytest.fixture
def tiny_vit(tmp_path: Path) -> Path:
    """For images of 16x16 pixels, which the digits are not."""
    folder = tmp_path / "tiny-vit"
    config = transformers.ViTConfig(
        image_size=16, patch_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=24, initializer_range=0.2,
    )  # fmt: skip
    transformers.ViTModel(config).save_pretrained(folder)
    processor = transformers.ViTImageProcessor(
        size={"height": 16, "width": 16}, image_mean=[0.5] * 3, image_std=[0.5] * 3
    )
    processor.save_pretrained(folder)
    return folder


def test_a_pretrained_model_is_tuned_alike_by_both_implementations(
    run_recipe: Recipe, tmp_path: Path, tiny_vit: Path
) -> None:
    tables = []
    for implementation in ("scratch", "hf"):
        finished = run_recipe(
            "cifar10", *QUICK, "--model", tiny_vit, "--implementation", implementation,
            "--run-id", implementation, "--train.learning-rate", "0.001",
        )  # fmt: skip
        assert finished.status == 0, finished.err
        assert "new, to be trained: classifier" in finished.err
        run = tmp_path / "results/runs/cifar10" / implementation
        assert summary_of(run)["model"]["method"] == "full"
        tables.append(pandas.read_parquet(run / "predictions/test.parquet"))
        processor = transformers.AutoImageProcessor.from_pretrained(run / "model")
        assert dict(processor.size) == {"height": 16, "width": 16}
        assert list(processor.image_mean) == [0.5] * 3
    ours, theirs = (np.stack(table["probabilities"]) for table in tables)
    assert np.abs(ours - theirs).max() < 1e-4
    assert (tables[0]["id"] == tables[1]["id"]).all()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--model", "vit", "--vit.patch-size", "3"), ["patch_size 3", "8x8"]),
        (("--model", "resnet", "--implementation", "hf"), ["--implementation scratch"]),
        (("--model", "no/such/folder/here"), ["no/such/folder/here"]),
        (("--augmentation.erasing", "2"), ["--augmentation.erasing 2", "from 0 to 1"]),
        (("--label-smoothing", "-1"), ["--label_smoothing -1"]),
        (("--dataset", "no-such-folder/"), ["no-such-folder"]),
    ],
)
def test_mistakes_are_told_in_one_line(
    run_recipe: Recipe, tmp_path: Path, arguments: tuple[str, ...], expected: list[str]
) -> None:
    finished = run_recipe("cifar10", *QUICK, *arguments)
    assert finished.status == 2
    for part in expected:
        assert part in finished.error
    assert not (tmp_path / "results").exists()


def test_a_dry_run_shows_what_would_be_trained(run_recipe: Recipe, tmp_path: Path) -> None:
    finished = run_recipe("cifar10", *QUICK, "--model", "vit", "--dry-run")
    assert finished.status == 0, finished.err
    assert "pixel_values [16, 3, 8, 8]" in finished.out
    assert not (tmp_path / "results").exists()


def test_a_patch_that_does_not_divide_the_image_is_refused(
    run_recipe: Recipe, tmp_path: Path
) -> None:
    finished = run_recipe(
        "cifar10", "--preset", "demo", "--model", "vit", "--vit.patch_size", "5", "--run-id", "a"
    )
    assert finished.status == 2
    assert "8" in finished.error
    assert "5" in finished.error
    assert "Traceback" not in finished.err
    assert not (tmp_path / "results").exists()


def test_every_method_on_a_pretrained_model(
    run_recipe: Recipe, tmp_path: Path, tiny_vit: Path
) -> None:
    trained = {}
    for method in ("lora", "dora", "frozen"):
        finished = run_recipe(
            "cifar10", *QUICK, "--model", tiny_vit, "--method", method, "--run-id", method
        )
        assert finished.status == 0, finished.err
        run = tmp_path / "results/runs/cifar10" / method
        summary = summary_of(run)
        assert summary["model"]["method"] == method
        trained[method] = summary["model"]["parameters_trained"]
        assert (run / "model/model.safetensors").is_file()
    classifier = 10 * 16 + 10
    updates = 2 * 2 * 8 * (16 + 16)  # two layers, query and value, rank 8
    assert trained["lora"] == classifier + updates
    assert trained["dora"] == trained["lora"] + 2 * 2 * 16  # a length for every row
    assert trained["frozen"] == classifier
    for arguments in (("--model", "vit", "--method", "lora"), ("--method", "full")):
        finished = run_recipe("cifar10", *QUICK, *arguments)
        assert finished.status == 2
        assert "--method from_scratch" in finished.error


def test_a_network_that_only_we_have_is_trained_further(run_recipe: Recipe, tmp_path: Path) -> None:
    root = tmp_path / "results/runs/cifar10"
    assert run_recipe("cifar10", *QUICK, "--run-id", "a").status == 0
    further = (*QUICK, "--model", root / "a/model", "--train.learning-rate", "0")
    options = ("--run-id", "b", "--class-weights", "balanced", "--title", "further")
    finished = run_recipe("cifar10", *further, *options)
    assert finished.status == 0, finished.err
    assert summary_of(root / "a")["title"] == "resnet, from_scratch"
    assert summary_of(root / "b")["title"] == "further"
    assert "class weights: 0 " in finished.err
    one, other = (load_file(root / name / "model/model.safetensors") for name in "ab")
    assert one.keys() == other.keys()
    # Not the running statistics of batch norm, which no learning rate holds back.
    assert all(value.equal(other[name]) for name, value in one.items() if "running" not in name
               and "batches" not in name)  # fmt: skip
    weights = summary_of(root / "b")["training"]["class_weights"]
    counts = json.loads((root / "b/data.json").read_text())["class_counts"]["train"]
    rows = sum(counts.values())
    assert weights == pytest.approx([rows / (10 * count) for count in counts.values()], rel=1e-6)
    hf = run_recipe("cifar10", *further, "--implementation", "hf")
    assert hf.status == 2
    assert "HuggingFace has no scratch_cifar_resnet" in hf.error
