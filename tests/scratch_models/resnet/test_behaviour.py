"""What ResNet refuses, low precision, and HuggingFace's image pipeline."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import ViTImageProcessor, pipeline

from scratch_models import (
    ScratchResNetForImageClassification,
    ScratchResNetModel,
    disable,
    enable,
)


def test_another_number_of_channels_is_refused(tiny_resnet_config) -> None:
    model = ScratchResNetForImageClassification(tiny_resnet_config())
    with pytest.raises(ValueError, match=r"have 1 channels .* the model reads 3 .*num_channels=1"):
        model(torch.zeros(2, 1, 32, 32))


@pytest.mark.parametrize("shape", [(3, 32, 32), (2, 3, 0, 32), (2, 3, 32, 0)])
def test_what_is_no_batch_of_images_is_refused(shape: tuple[int, ...], tiny_resnet_config) -> None:
    model = ScratchResNetModel(tiny_resnet_config())
    with pytest.raises(ValueError, match=r"expected \[batch, 3 channels, height, width\]"):
        model(torch.zeros(shape))


def test_training_on_what_shrinks_to_one_pixel_is_refused(tiny_resnet_config) -> None:
    """With stem and stages, 16 pixels become one: two images of them can be trained on."""
    model = ScratchResNetModel(tiny_resnet_config()).train()
    with pytest.raises(ValueError, match="one image that has shrunk to 1x1 pixels"):
        model(torch.randn(1, 3, 16, 16))
    model(torch.randn(2, 3, 16, 16))
    model(torch.randn(1, 3, 17, 16))
    model.eval()(torch.randn(1, 3, 16, 16))


def test_stages_without_depth_are_refused(tiny_resnet_config) -> None:
    with pytest.raises(ValueError, match="3 hidden_sizes and 2 depths"):
        ScratchResNetModel(tiny_resnet_config(depths=[1, 2]))


@pytest.mark.parametrize("layer_type", ["basic", "bottleneck"])
def test_training_in_bfloat16_stays_finite(layer_type: str, resnet_pair) -> None:
    scratch, reference = resnet_pair(layer_type=layer_type)
    pixels, labels = torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 0])
    losses = []
    for model in (scratch.train(), reference.train()):
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(pixels, labels=labels).loss
        loss.backward()
        losses.append(loss)
    assert torch.equal(*losses)
    assert all(torch.isfinite(p.grad).all() for p in scratch.parameters())
    assert all(torch.isfinite(buffer).all() for buffer in scratch.buffers())


@pytest.fixture
def said(caplog) -> Iterator[pytest.LogCaptureFixture]:
    """What transformers logs; it does not pass it on to where pytest listens."""
    logger = logging.getLogger("transformers")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


@pytest.fixture
def auto_classes() -> Iterator[None]:
    enable()
    yield
    disable()


def test_the_image_pipeline_answers_as_with_huggingface_s_class(
    resnet_pair, auto_classes, said
) -> None:
    scratch, reference = resnet_pair(id2label={0: "猫", 1: "狗", 2: "鸟"})
    processor = ViTImageProcessor(size={"height": 32, "width": 32})
    pixels = np.random.default_rng(0).integers(0, 256, (40, 48, 3), dtype=np.uint8)
    ours, theirs = (
        pipeline("image-classification", model=model, image_processor=processor)(
            Image.fromarray(pixels)
        )
        for model in (scratch, reference)
    )
    assert [answer["label"] for answer in ours] == [answer["label"] for answer in theirs]
    assert {answer["label"] for answer in ours} == {"猫", "狗", "鸟"}
    scores = [answer["score"] for answer in theirs]
    assert [answer["score"] for answer in ours] == pytest.approx(scores, abs=1e-6)
    assert "is not supported" not in said.text
