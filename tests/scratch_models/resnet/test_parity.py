"""ResNet equals HuggingFace's: values, gradients, steps, statistics, saves, fresh weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from scratch_models import scratch_class
from scratch_models.baselines.resnet.parity_grid import VARIANTS
from scratch_models.hub.mapping import to_own_names
from scratch_models.parity import compare_saving

HEADS = ["model", "image-classification"]
CONFIGS: dict[str, dict[str, Any]] = {"default": {}, **VARIANTS}


def images(channels: int = 3, height: int = 40, width: int = 33, batch: int = 3) -> Tensor:
    return torch.randn(batch, channels, height, width)


def assert_close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def assert_same_outputs(ours: Any, theirs: Any) -> None:
    assert ours.keys() == theirs.keys()
    for key, expected in theirs.items():
        if key == "hidden_states":
            for own, other in zip(ours.hidden_states, expected, strict=True):
                assert_close(own, other)
        else:
            assert_close(ours[key], expected)


def assert_same_state(scratch, reference) -> None:
    """Parameters and running statistics."""
    expected, own = to_own_names(scratch, reference.state_dict()), scratch.state_dict()
    assert own.keys() == expected.keys()
    for name, tensor in own.items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-5, rtol=1e-5, msg=name)


def assert_same_gradients(scratch, reference) -> None:
    theirs = {name: p.grad for name, p in reference.named_parameters()}
    expected = to_own_names(scratch, theirs)
    for name, parameter in scratch.named_parameters():
        scale = max(1.0, float(expected[name].abs().max()))
        assert float((parameter.grad - expected[name]).abs().max()) <= 1e-5 * scale, name


@pytest.mark.parametrize("variant", CONFIGS)
def test_every_value_and_gradient_over_configs(variant: str, resnet_pair) -> None:
    scratch, reference = resnet_pair(**CONFIGS[variant])
    pixels, labels = images(scratch.config.num_channels), torch.tensor([0, 2, 1])
    for training in (False, True):
        scratch.train(training)
        reference.train(training)
        batch = {"pixel_values": pixels, "labels": labels, "output_hidden_states": True}
        ours, theirs = scratch(**batch), reference(**batch)
        assert_same_outputs(ours, theirs)
        ours.loss.backward()
        theirs.loss.backward()
        assert_same_gradients(scratch, reference)
    assert_same_state(scratch, reference)
    assert all(row.passed for row in compare_saving(scratch, reference))


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
@pytest.mark.parametrize("layer_type", ["basic", "bottleneck"])
def test_ten_steps_leave_equal_weights_and_statistics(
    layer_type: str, optimizer: str, resnet_pair
) -> None:
    pair = resnet_pair(layer_type=layer_type)
    before = {name: tensor.clone() for name, tensor in pair[0].state_dict().items()}
    losses = []
    for model in pair:
        generator = torch.Generator().manual_seed(4)
        rule = getattr(torch.optim, optimizer)(model.train().parameters(), lr=1e-3)
        for _ in range(10):
            pixels = torch.randn(4, 3, 32, 32, generator=generator)
            loss = model(pixels, labels=torch.tensor([0, 1, 2, 0])).loss
            loss.backward()
            rule.step()
            rule.zero_grad()
            losses.append(float(loss.detach()))
    assert losses[:10] == pytest.approx(losses[10:], abs=1e-5)
    assert_same_state(*pair)
    for name, tensor in pair[0].state_dict().items():
        assert not torch.equal(tensor, before[name]), f"{name} was not trained"
    pixels = images()
    assert_close(pair[0].eval()(pixels).logits, pair[1].eval()(pixels).logits)


@pytest.mark.parametrize("height", [1, 2, 31, 64])
def test_images_of_any_size(height: int, resnet_pair) -> None:
    scratch, reference = resnet_pair("model", layer_type="bottleneck")
    pixels = images(height=height, width=17)
    assert_same_outputs(scratch(pixels), reference(pixels))


@pytest.mark.parametrize(
    ("problem", "number", "labels"),
    [
        ("regression", 1, torch.tensor([0.5, -1.0, 2.0])),
        ("regression", 3, torch.randn(3, 3)),
        ("multi_label_classification", 3, torch.tensor([[1.0, 0, 1], [0, 0, 0], [0, 1, 1]])),
        ("single_label_classification", 3, torch.tensor([0, 1, -100])),
        (None, 1, torch.tensor([0.5, -1.0, 2.0])),
        (None, 3, torch.tensor([2, 1, 0])),
        (None, 3, torch.tensor([[1.0, 0, 1], [0, 0, 0], [0, 1, 1]])),
    ],
)
def test_every_kind_of_loss(problem: str | None, number: int, labels: Tensor, resnet_pair) -> None:
    scratch, reference = resnet_pair(problem_type=problem, num_labels=number)
    pixels = images()
    ours, theirs = scratch(pixels, labels=labels), reference(pixels, labels=labels)
    assert theirs.loss > 0
    assert_same_outputs(ours, theirs)


def test_without_labels_the_head_gives_the_features(resnet_pair) -> None:
    scratch, reference = resnet_pair(num_labels=0)
    pixels = images()
    assert_close(scratch(pixels).logits, reference(pixels).logits)
    assert all(row.passed for row in compare_saving(scratch, reference))


@pytest.mark.parametrize("head", HEADS)
def test_return_dict_false_gives_huggingface_s_tuple(head: str, resnet_pair) -> None:
    scratch, reference = resnet_pair(head)
    batch: dict[str, Any] = {"pixel_values": images()}
    if head != "model":
        batch["labels"] = torch.tensor([0, 1, 2])
    for flags in ({}, {"output_hidden_states": True}):
        ours = scratch(**batch, **flags, return_dict=False)
        theirs = reference(**batch, **flags, return_dict=False)
        assert isinstance(ours, tuple)
        for own, expected in zip(ours, theirs, strict=True):
            torch.testing.assert_close(own, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("head", HEADS)
def test_hidden_states_asked_for_by_the_config(head: str, resnet_pair) -> None:
    scratch, reference = resnet_pair(head, output_hidden_states=True)
    pixels = images()
    ours, theirs = scratch(pixels), reference(pixels)
    assert len(ours.hidden_states) == 4  # the stem and three stages
    assert_same_outputs(ours, theirs)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("variant", ["default", "bottleneck", "first stage projects"])
def test_the_same_seed_gives_huggingface_s_fresh_weights(
    variant: str, head: str, tiny_resnet_config
) -> None:
    own_class, config = scratch_class("resnet", head), tiny_resnet_config(**CONFIGS[variant])
    torch.manual_seed(7)
    scratch = own_class(config)
    torch.manual_seed(7)
    reference = getattr(transformers, own_class.huggingface_class)(config)
    expected, own = to_own_names(scratch, reference.state_dict()), scratch.state_dict()
    assert own.keys() == expected.keys()
    assert all(torch.equal(own[name], expected[name]) for name in own)
    assert all(row.passed for row in compare_saving(scratch, reference))
