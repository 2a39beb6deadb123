"""Images of every size: rectangular, not whole patches, other than trained on, and wrong ones."""

from __future__ import annotations

import logging

import pytest
import torch
from torch.nn import functional as F
from transformers.utils import logging as transformers_logging

from scratch_models import ScratchViTForImageClassification, ScratchViTModel


@pytest.fixture
def warned(caplog):
    """The warnings of this test; what was said before in this process counts as not said."""
    type(transformers_logging.get_logger()).warning_once.cache_clear()
    caplog.set_level(logging.WARNING, "scratch_models")
    return lambda: [r.getMessage() for r in caplog.records if r.name.startswith("scratch_models")]


@pytest.mark.parametrize(
    ("image", "patch"),
    [
        (16, 8),
        ((24, 40), 8),
        ([40, 24], 8),
        ((24, 40), (8, 8)),
        ((24, 20), (8, 4)),
        ((16, 16), [16, 4]),
        (8, 8),
        (16, 1),
    ],
)
def test_sizes_of_images_and_patches(image, patch, tiny_vit, vit_pair) -> None:
    config = tiny_vit(image_size=image, patch_size=patch)
    scratch, reference = vit_pair(config)
    height, width = (image, image) if isinstance(image, int) else image
    pixels = torch.randn(2, 3, height, width)
    ours, theirs = scratch(pixels).last_hidden_state, reference(pixels).last_hidden_state
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "size", [(16, 16), (16, 24), (24, 16), (40, 40), (8, 8), (8, 32), (64, 8), (17, 16)]
)
def test_other_sizes_equal_huggingface_on_square_positions(size, tiny_vit, vit_pair) -> None:
    """Among them grids of as many patches in another shape, and an unchanged grid."""
    pair = vit_pair(tiny_vit(), "image-classification")
    pixels = torch.randn(2, 3, *size)
    logits = [model(pixels, interpolate_pos_encoding=True).logits for model in pair]
    torch.testing.assert_close(*logits, atol=1e-5, rtol=0)
    for value in logits:
        value.square().sum().backward()
    ours = pair[0].vit.embeddings.position.grad
    theirs = pair[1].vit.embeddings.position_embeddings.grad
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def positions_by_hand(position, trained, grid):
    """The positions of a grid, computed on the image they form."""
    image = torch.empty(1, position.shape[-1], *trained)
    for row in range(trained[0]):
        for column in range(trained[1]):
            image[0, :, row, column] = position[0, 1 + row * trained[1] + column]
    resized = F.interpolate(image, size=grid, mode="bicubic", align_corners=False)
    rows = [resized[0, :, row, column] for row in range(grid[0]) for column in range(grid[1])]
    return torch.stack([position[0, 0], *rows])[None]


@pytest.mark.parametrize(
    ("image", "patch", "size"),
    [
        ((24, 40), 8, (48, 80)),  # 3x5 positions: HuggingFace crashes
        ((24, 40), 8, (40, 24)),  # as many patches, turned
        ((16, 64), 8, (32, 32)),  # 2x8 positions: HuggingFace takes them for 4x4
        ((16, 64), 8, (24, 24)),
        ((24, 20), (8, 4), (32, 32)),
        (32, (8, 4), (16, 32)),
    ],
)
@torch.no_grad()
def test_other_sizes_on_rectangular_positions_by_hand(image, patch, size, tiny_vit) -> None:
    scratch = ScratchViTModel(tiny_vit(image_size=image, patch_size=patch)).eval()
    embeddings = scratch.embeddings
    patch = (patch, patch) if isinstance(patch, int) else patch
    pixels = torch.randn(2, 3, *size)
    patches = embeddings.projection(pixels).flatten(2).transpose(1, 2)
    tokens = torch.cat([embeddings.class_token.expand(2, -1, -1), patches], dim=1)
    grid = (size[0] // patch[0], size[1] // patch[1])
    expected = tokens + positions_by_hand(embeddings.position, embeddings.grid, grid)
    states = scratch(pixels, interpolate_pos_encoding=True, output_hidden_states=True)
    torch.testing.assert_close(states.hidden_states[0], expected, atol=1e-6, rtol=0)


@torch.no_grad()
def test_the_trained_size_keeps_its_positions(tiny_vit) -> None:
    """HuggingFace crashes on 3x5 positions, and mixes up 2x8 ones."""
    for image in ((24, 40), (16, 64)):
        scratch = ScratchViTModel(tiny_vit(image_size=image)).eval()
        pixels = torch.randn(1, 3, *image)
        plain, interpolated = scratch(pixels), scratch(pixels, interpolate_pos_encoding=True)
        assert torch.equal(plain.last_hidden_state, interpolated.last_hidden_state)


def test_a_checkpoint_with_dropped_pixels_loads_with_one_warning(
    tiny_vit, vit_pair, warned
) -> None:
    scratch, reference = vit_pair(tiny_vit(image_size=30), "image-classification")
    said = warned()
    assert len(said) == 1
    assert "30x30" in said[0]
    assert "8x8" in said[0]
    assert "6 pixels at the bottom and 6 at the right" in said[0]
    pixels = torch.randn(2, 3, 30, 30)
    expected = reference(pixels, output_hidden_states=True)
    ours = scratch(pixels, output_hidden_states=True)
    assert ours.hidden_states[0].shape[1] == 1 + 9
    torch.testing.assert_close(ours.logits, expected.logits, atol=1e-5, rtol=0)
    assert warned() == said  # once a size
    other = torch.randn(2, 3, 33, 35)
    for _ in range(2):
        ours, theirs = (
            m(other, interpolate_pos_encoding=True).logits for m in (scratch, reference)
        )
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    assert len(warned()) == 2
    assert "33x35" in warned()[1]
    assert "1 pixels at the bottom and 3 at the right" in warned()[1]


def test_rectangular_checkpoints_with_dropped_pixels(tiny_vit, vit_pair, warned) -> None:
    scratch, reference = vit_pair(tiny_vit(image_size=(26, 40)))
    pixels = torch.randn(2, 3, 26, 40)
    ours, theirs = (m(pixels).pooler_output for m in (scratch, reference))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    assert len(warned()) == 1
    assert "2 pixels at the bottom and 0 at the right" in warned()[0]


@pytest.mark.parametrize("build", ["__call__", "_from_config"])
@pytest.mark.parametrize("model_class", [ScratchViTModel, ScratchViTForImageClassification])
def test_a_new_model_that_would_drop_pixels_is_refused(
    model_class, build: str, tiny_vit, vit_pair
) -> None:
    vit_pair(tiny_vit(image_size=30))  # a checkpoint loads; what is built afterwards is new again
    create = model_class if build == "__call__" else model_class._from_config
    with pytest.raises(
        ValueError, match=r"image_size 30x30 .* patch_size 8x8 .*: 6 pixels .* 6 at"
    ):
        create(tiny_vit(image_size=30))
    with pytest.raises(
        ValueError, match=r"image_size 16x30 .* patch_size 8x8 .*: 0 pixels .* 6 at"
    ):
        create(tiny_vit(image_size=(16, 30)))


def test_images_that_fit_are_not_warned_of(tiny_vit, vit_pair, warned) -> None:
    scratch, _ = vit_pair(tiny_vit())
    scratch(torch.randn(1, 3, 32, 8), interpolate_pos_encoding=True)
    assert warned() == []


@pytest.mark.parametrize(
    ("shape", "interpolate", "message"),
    [
        ((2, 3, 24, 40), False, "24x40 .* positions for 16x16: .*interpolate_pos_encoding=True"),
        ((2, 1, 16, 16), False, "1 channels but .* 3 "),
        ((2, 4, 16, 16), True, "4 channels but .* 3 "),
        ((3, 16, 16), False, r"\[3, 16, 16\]; expected \[batch, channels, height, width\]"),
        ((2, 3, 24, 7), True, "24x7 .* smaller than a patch .8x8"),
    ],
)
def test_images_that_do_not_fit_are_refused(shape, interpolate, message: str, tiny_vit) -> None:
    model = ScratchViTForImageClassification(tiny_vit())
    with pytest.raises(ValueError, match=message):
        model(torch.randn(shape), interpolate_pos_encoding=interpolate)


def test_masked_image_modelling_is_refused(tiny_vit) -> None:
    with pytest.raises(ValueError, match="no mask token"):
        ScratchViTModel(tiny_vit())(torch.randn(1, 3, 16, 16), torch.ones(1, 4))
