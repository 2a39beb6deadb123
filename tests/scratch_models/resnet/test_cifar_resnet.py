"""The ResNet for 32x32 images: the other stem, its size, and a life of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForImageClassification,
    ResNetConfig,
    ResNetForImageClassification,
)
from transformers.models.resnet.modeling_resnet import ResNetConvLayer

from scratch_models import (
    ScratchCifarResNetConfig,
    ScratchCifarResNetForImageClassification,
    ScratchCifarResNetModel,
    ScratchResNetForImageClassification,
    disable,
    enable,
)
from scratch_models.baselines.resnet.parity_grid import TINY
from scratch_models.hub.mapping import to_own_names


def build(**changes: Any) -> ScratchCifarResNetForImageClassification:
    config = ScratchCifarResNetConfig(**{**TINY, "num_labels": 3, **changes})
    return ScratchCifarResNetForImageClassification(config).eval()


def test_the_defaults_have_the_size_of_resnet_18_for_cifar() -> None:
    """Counted from the layers: kernel x in x out, a weight and a bias for every norm channel."""

    def norm(channels: int) -> int:
        return 2 * channels

    expected = 9 * 3 * 64 + norm(64)  # the stem
    expected += 4 * (9 * 64 * 64 + norm(64))  # two blocks of two convolutions
    for narrow, wide in [(64, 128), (128, 256), (256, 512)]:
        expected += 9 * narrow * wide + 3 * 9 * wide * wide + 4 * norm(wide)
        expected += narrow * wide + norm(wide)  # the projection
    expected += 512 * 10 + 10  # the classifier
    assert expected == 11_173_962
    with torch.device("meta"):
        model = ScratchCifarResNetForImageClassification(ScratchCifarResNetConfig(num_labels=10))
    assert model.num_parameters() == expected


def test_it_is_huggingface_s_resnet_behind_another_stem() -> None:
    model = build(layer_type="bottleneck")
    reference = ResNetForImageClassification(
        ResNetConfig(**{**TINY, "num_labels": 3, "layer_type": "bottleneck"})
    )
    stem = reference.resnet.embedder
    stem.embedder, stem.pooler = ResNetConvLayer(3, 8, kernel_size=3), torch.nn.Identity()
    names = ScratchResNetForImageClassification(reference.config)
    model.load_state_dict(to_own_names(names, reference.state_dict()))
    pixels = torch.randn(2, 3, 32, 32)
    ours = model(pixels, output_hidden_states=True)
    theirs = reference.eval()(pixels, output_hidden_states=True)
    torch.testing.assert_close(ours.logits, theirs.logits, atol=1e-5, rtol=0)
    for own, expected in zip(ours.hidden_states, theirs.hidden_states, strict=True):
        torch.testing.assert_close(own, expected, atol=1e-5, rtol=0)
    assert ours.hidden_states[0].shape == (2, 8, 32, 32)
    assert ours.hidden_states[-1].shape == (2, 24, 8, 8)


@pytest.mark.parametrize("body", [False, True])
def test_what_is_saved_loads_with_equal_outputs(body: bool, tmp_path) -> None:
    model = build(hidden_act="gelu", id2label={0: "a", 1: "b", 2: "c"})
    pixels = torch.randn(4, 3, 32, 32)
    with torch.no_grad():
        model.train()(pixels)  # so that there are statistics to save
    model.eval()
    saved = model.resnet if body else model
    saved.save_pretrained(tmp_path)
    loaded, info = type(saved).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values()), info
    assert type(loaded.config) is ScratchCifarResNetConfig
    assert loaded.config.hidden_act == "gelu"
    assert loaded.config.id2label == {0: "a", 1: "b", 2: "c"}
    assert torch.equal(loaded(pixels)[0], saved(pixels)[0])
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["model_type"] == "scratch_cifar_resnet"
    assert written["architectures"] == [type(saved).__name__]


def test_the_auto_classes_load_it_after_enable(tmp_path) -> None:
    model = build()
    model.save_pretrained(tmp_path)
    enable()
    try:
        loaded = AutoModelForImageClassification.from_pretrained(tmp_path)
        assert type(loaded) is ScratchCifarResNetForImageClassification
        assert type(AutoConfig.from_pretrained(tmp_path)) is ScratchCifarResNetConfig
        assert type(AutoModel.from_config(model.config)) is ScratchCifarResNetModel
    finally:
        disable()


def test_the_two_kinds_of_resnet_do_not_read_each_other_s_checkpoints(tmp_path) -> None:
    build().save_pretrained(tmp_path / "cifar")
    ScratchResNetForImageClassification(ResNetConfig(**TINY)).save_pretrained(tmp_path / "imagenet")
    with pytest.raises(ValueError, match="'scratch_cifar_resnet'"):
        ScratchResNetForImageClassification.from_pretrained(tmp_path / "cifar")
    with pytest.raises(ValueError, match="reads 'scratch_cifar_resnet'"):
        ScratchCifarResNetForImageClassification.from_pretrained(tmp_path / "imagenet")


def test_it_learns_where_a_pattern_is() -> None:
    torch.manual_seed(0)
    model = build(num_labels=2).train()
    labels = torch.arange(16) % 2
    pixels = torch.randn(16, 3, 16, 16) * 0.1
    pixels[labels == 1, :, ::2] += 1.0  # stripes
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(10):
        model(pixels, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert model.eval()(pixels).logits.argmax(-1).tolist() == labels.tolist()
