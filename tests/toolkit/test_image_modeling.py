"""New image models, and how pretrained ones want their images."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers

from toolkit.errors import UserError
from toolkit.image_modeling import (
    ResNetShape,
    ViTShape,
    check_method,
    load_preprocessing,
    new_resnet,
    new_vit,
)

NAMES = ["cat", "dog", "owl"]
SMALL = ViTShape(patch_size=4, layers=2, hidden_size=16, heads=2, feed_forward=1.5)


def test_both_implementations_make_the_same_new_vit() -> None:
    models = []
    for implementation in ("scratch", "hf"):
        torch.manual_seed(0)
        models.append(new_vit(SMALL, (8, 12), NAMES, implementation))  # type: ignore[arg-type]
    ours, theirs = models
    assert type(ours).__name__ == "ScratchViTForImageClassification"
    assert type(theirs).__name__ == "ViTForImageClassification"
    images = torch.randn(2, 3, 8, 12)
    one, other = (model.eval()(pixel_values=images).logits for model in models)
    assert torch.allclose(one, other, atol=1e-5)
    assert one.shape == (2, 3)
    assert ours.config.id2label == {0: "cat", 1: "dog", 2: "owl"}
    assert ours.config.intermediate_size == 24


def test_a_new_resnet() -> None:
    model = new_resnet(ResNetShape([8, 16], [1, 2]), NAMES, "scratch")
    assert model(pixel_values=torch.randn(2, 3, 8, 8)).logits.shape == (2, 3)
    assert model.config.label2id == {"cat": 0, "dog": 1, "owl": 2}


def test_shapes_that_cannot_be() -> None:
    with pytest.raises(UserError, match=r"patch_size 5 does not divide .* 8x12 pixels"):
        new_vit(ViTShape(patch_size=5), (8, 12), NAMES, "scratch")
    with pytest.raises(UserError, match=r"heads 3 does not divide --vit.hidden_size 16"):
        new_vit(ViTShape(4, 1, 16, 3), (8, 8), NAMES, "scratch")
    with pytest.raises(UserError, match=r"--vit.layers 0"):
        new_vit(ViTShape(layers=0), (8, 8), NAMES, "scratch")
    with pytest.raises(UserError, match=r"widths \[8\] and --resnet.depths \[1, 1\]"):
        new_resnet(ResNetShape([8], [1, 1]), NAMES, "scratch")
    with pytest.raises(UserError, match="--implementation scratch"):
        new_resnet(ResNetShape(), NAMES, "hf")


def test_new_and_pretrained_are_told_apart() -> None:
    check_method("vit", "from_scratch")
    check_method("some/model", "lora")
    with pytest.raises(UserError, match="--model vit or resnet, not 'some/model'"):
        check_method("some/model", "from_scratch")
    with pytest.raises(UserError, match="--model resnet is a new model"):
        check_method("resnet", "lora")


def folder(tmp_path: Path, **processor: object) -> str:
    transformers.ViTConfig(image_size=8).save_pretrained(tmp_path)
    if processor:
        content = {"image_processor_type": "ViTImageProcessor", **processor}
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(content))
    return str(tmp_path)


def test_preprocessing_is_read_from_the_model(tmp_path: Path) -> None:
    name = folder(
        tmp_path, size={"height": 8, "width": 12}, image_mean=[0.1, 0.2, 0.3],
        image_std=[0.4, 0.5, 0.6],
    )  # fmt: skip
    found = load_preprocessing(name)
    assert found.size == (8, 12)
    assert found.mean == [0.1, 0.2, 0.3]
    assert found.std == [0.4, 0.5, 0.6]


def test_preprocessing_without_normalisation_and_with_one_edge(tmp_path: Path) -> None:
    found = load_preprocessing(folder(tmp_path, size={"shortest_edge": 10}, do_normalize=False))
    assert found.size == (10, 10)
    image = torch.full((1, 3, 10, 10), 255, dtype=torch.uint8)
    assert torch.equal(found(image), torch.ones(1, 3, 10, 10))


def test_a_folder_that_does_not_say_how_it_wants_images(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"preprocessor_config\.json"):
        load_preprocessing(folder(tmp_path))
