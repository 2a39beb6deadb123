"""Augmentation by hand, and that it depends on seed, epoch and row only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torchvision.transforms import v2

from toolkit.data.augmentation import Augmentation, crop_and_flip, cutmix, erase, mixup
from toolkit.data.augmentation_config import AugmentationSettings
from toolkit.data.image_collate import ImageCollator, Preprocessing, measure_colours
from toolkit.data.images import ImageRows
from toolkit.data.rand_augment import OPERATIONS, rand_augment
from toolkit.data.randomness import uniforms
from toolkit.errors import UserError

ALL = AugmentationSettings(crop_padding=2, randaugment=2, erasing=0.5, mixup=0.8, cutmix=1.0)


def images(count: int, height: int = 8, width: int = 8, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, 3, height, width), generator=generator).to(torch.uint8)


def examples(rows: list[int], epoch: int, pixels: torch.Tensor) -> list[dict[str, Any]]:
    return [{"pixels": pixels[r], "label": r % 4, "index": r, "epoch": epoch} for r in rows]


def collator(settings: AugmentationSettings, seed: int = 1) -> ImageCollator:
    preprocessing = Preprocessing((8, 8), [0.5, 0.4, 0.3], [0.2, 0.3, 0.4])
    return ImageCollator(preprocessing, Augmentation(settings, seed), 4)


# Random numbers


def test_numbers_are_uniform_and_independent() -> None:
    drawn = uniforms(3, 5, np.arange(20_000), 1, 4)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert np.abs(np.histogram(drawn, bins=10)[0] / drawn.size - 0.1).max() < 0.005
    assert np.abs(np.corrcoef(drawn.T) - np.eye(4)).max() < 0.03
    neighbours = np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1]
    assert abs(neighbours) < 0.03


def test_a_number_depends_on_all_it_is_for_and_nothing_else() -> None:
    rows = np.array([7, 3, 900])
    drawn = uniforms(3, 5, rows, 1, 4)
    assert (uniforms(3, 5, rows[::-1].copy(), 1, 4) == drawn[::-1]).all()
    assert (uniforms(3, 5, rows[1:2], 1, 2) == drawn[1:2, :2]).all()
    for other in (
        uniforms(4, 5, rows, 1, 4),
        uniforms(3, 6, rows, 1, 4),
        uniforms(3, 5, rows, 2, 4),
    ):
        assert (other != drawn).all()
    assert len(np.unique(drawn)) == drawn.size


# Crop and mirror


def test_crop_and_flip_by_hand() -> None:
    image = torch.arange(1, 10).view(1, 1, 3, 3).repeat(4, 1, 1, 1)
    # Of five places in each direction (padding 2): up left, middle, down right; the last mirrored.
    draws = np.array([[0.0, 0.0, 0.9], [0.5, 0.5, 0.9], [0.99, 0.99, 0.9], [0.5, 0.3, 0.1]])
    changed = crop_and_flip(image, draws, 2, True)[:, 0]
    assert changed[0].tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert changed[1].tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert changed[2].tolist() == [[9, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert changed[3].tolist() == [[2, 1, 0], [5, 4, 0], [8, 7, 0]]  # one to the left, mirrored
    assert torch.equal(crop_and_flip(image, draws, 0, False), image)


def test_every_place_and_both_sides_come_up_in_a_batch() -> None:
    image = images(1)[0]
    settings = AugmentationSettings(crop_padding=1)
    changed = Augmentation(settings, 0).change_pixels(image.repeat(500, 1, 1, 1), np.arange(500), 0)
    kinds = {tuple(one.flatten().tolist()) for one in changed}
    assert len(kinds) == 3 * 3 * 2


# RandAugment


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("magnitude", [0, 9, 30])
def test_operations_are_torchvisions(name: str, magnitude: int) -> None:
    theirs = v2.RandAugment(num_ops=1, magnitude=magnitude)
    their_name = "".join(word.capitalize() for word in name.split())
    their_name = {"Autocontrast": "AutoContrast"}.get(their_name, their_name)
    batch = images(3, 9, 12)
    operation, strongest, signed = OPERATIONS[name]
    magnitudes, their_signed = theirs._AUGMENTATION_SPACE[their_name]
    assert signed == their_signed
    values = magnitudes(31, 9, 12)
    for sign in (1, -1) if signed else (1,):
        value = 0.0 if values is None else sign * float(values[magnitude])
        expected = theirs._apply_image_or_video_transform(
            batch, their_name, value, interpolation=theirs.interpolation, fill={torch.Tensor: None}
        )
        ours = operation(batch, sign * strongest * magnitude / 30)
        difference = (ours.int() - expected.int()).abs()
        assert difference.max() <= 1  # 1.27 and 1.2700000002 may be rounded apart
        assert (difference > 0).float().mean() < 0.02
        one = operation(batch[1:2], sign * strongest * magnitude / 30)
        assert torch.equal(one[0], ours[1])  # an image does not depend on its neighbours


def test_images_of_a_batch_get_operations_of_their_own() -> None:
    batch = images(1).repeat(14, 1, 1, 1)
    names = list(OPERATIONS)
    draws = np.stack([(np.arange(14) + 0.5) / 14, np.full(14, 0.9)], 1)
    changed = rand_augment(batch, draws, 9)
    for number, name in enumerate(names):
        operation, strongest, _ = OPERATIONS[name]
        assert torch.equal(changed[number], operation(batch[:1], strongest * 9 / 30)[0]), name
    twice = rand_augment(batch, np.concatenate([draws, draws], 1), 9)
    operation, strongest, _ = OPERATIONS["rotate"]
    number = names.index("rotate")
    assert torch.equal(twice[number], operation(changed[number][None], strongest * 9 / 30)[0])
    assert torch.equal(batch, images(1).repeat(14, 1, 1, 1))


# Erasing


def test_erased_rectangles() -> None:
    batch = torch.ones(3, 2, 10, 10)
    # Area 0.02 + 0.5 * 0.31 = 0.175, square: 4 by 4; places 0.5 * 7 = 3 and the last.
    draws = np.array([[0.1, 0.5, 0.5, 0.5, 0.99], [0.9, 0.5, 0.5, 0.5, 0.5], [0.0, 1.0, 1.0, 0, 0]])
    erased = erase(batch, draws, 0.5)
    expected = torch.ones(10, 10)
    expected[3:7, 6:10] = 0
    assert torch.equal(erased[0], expected.expand(2, 10, 10))
    assert torch.equal(erased[1], batch[1])
    expected = torch.ones(10, 10)
    expected[0:10, 0:3] = 0  # area 0.33, 3.3 times as high as wide: 10.5 cut to 10, by 3.2
    assert torch.equal(erased[2], expected.expand(2, 10, 10))


# Mixing


def test_mixup_by_hand() -> None:
    batch = torch.tensor([[1.0], [2.0], [4.0]])
    assert mixup(batch, 0.75).flatten().tolist() == [1.75, 1.75, 3.5]


def test_cutmix_by_hand() -> None:
    batch = torch.stack([torch.full((1, 4, 6), float(n)) for n in range(3)])
    mixed, share = cutmix(batch, 0.75, np.array([0.5, 0.5]))  # half as high and wide, in the middle
    expected = torch.ones(4, 6)
    expected[1:3, 2:4] = 0
    assert torch.equal(mixed[1, 0], expected)
    assert share == pytest.approx(1 - 4 / 24)
    _, share = cutmix(batch, 0.75, np.array([0.0, 0.0]))
    assert share == pytest.approx(1 - 1 / 24)  # three quarters of it lie outside


@pytest.mark.parametrize(("name", "other"), [("mixup", "cutmix"), ("cutmix", "mixup")])
def test_mixed_targets_say_how_much_of_each_image_there_is(name: str, other: str) -> None:
    settings = AugmentationSettings(crop_padding=0, flip=False, **{name: 1.0, other: 0.0})
    pixels = torch.stack([torch.full((3, 8, 8), 50 * n) for n in range(4)]).to(torch.uint8)
    shares = set()
    for epoch in range(8):
        batch = collator(settings)(examples([0, 1, 2, 3], epoch, pixels))
        labels = batch["labels"]
        assert labels.dtype == torch.float32
        assert torch.allclose(labels.sum(1), torch.ones(4))
        values = batch["pixel_values"] * torch.tensor([0.2, 0.3, 0.4]).view(3, 1, 1)
        values = (values + torch.tensor([0.5, 0.4, 0.3]).view(3, 1, 1)) * 255 / 50
        for row in range(4):  # the mean brightness tells the shares
            expected = (labels[row] * torch.arange(4)).sum()
            assert values[row].mean() == pytest.approx(float(expected), abs=1e-4)
        shares.add(round(float(labels[0, 0]), 6))
    assert len(shares) > 4


def test_both_kinds_of_mixing_come_up() -> None:
    settings = AugmentationSettings(crop_padding=0, flip=False, mixup=1.0, cutmix=1.0)
    pixels = torch.stack([torch.full((3, 8, 8), 50 * n) for n in range(4)]).to(torch.uint8)
    flat = [
        bool((batch["pixel_values"][1, 0].std() < 1e-4) and float(batch["labels"].max()) < 1)
        for epoch in range(30)
        for batch in [collator(settings)(examples([0, 1, 2, 3], epoch, pixels))]
    ]
    assert 5 < sum(flat) < 25  # mixup leaves an even image even


# All together


def test_the_same_row_and_epoch_give_the_same_image_in_any_batch() -> None:
    settings = AugmentationSettings(crop_padding=2, randaugment=2, erasing=0.5)
    pixels = images(8)
    collate = collator(settings)
    batch = collate(examples([5, 1, 2], 3, pixels))
    again = collator(settings)(examples([2, 5], 3, pixels))
    assert torch.equal(batch["pixel_values"][0], again["pixel_values"][1])
    assert torch.equal(batch["pixel_values"][2], again["pixel_values"][0])
    assert batch["index"].tolist() == [5, 1, 2]
    assert batch["labels"].tolist() == [1, 1, 2]
    many = collate(examples(list(range(8)), 4, pixels))["pixel_values"]
    before = collate(examples(list(range(8)), 3, pixels))["pixel_values"]
    assert sum(torch.equal(a, b) for a, b in zip(many, before, strict=True)) <= 1
    other_seed = collator(settings, seed=2)(examples(list(range(8)), 3, pixels))["pixel_values"]
    assert sum(torch.equal(a, b) for a, b in zip(other_seed, before, strict=True)) <= 1


def test_a_whole_batch_is_repeated_bit_for_bit_whatever_torch_has_drawn() -> None:
    pixels = images(8)
    one = collator(ALL)(examples([4, 6, 1, 0], 2, pixels))
    torch.manual_seed(99)
    np.random.seed(99)
    other = collator(ALL)(examples([4, 6, 1, 0], 2, pixels))
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


def test_evaluation_changes_nothing() -> None:
    pixels = images(4)
    preprocessing = Preprocessing((8, 8), [0.5, 0.4, 0.3], [0.2, 0.3, 0.4])
    batch = ImageCollator(preprocessing)(examples([0, 1, 2, 3], 0, pixels))
    expected = v2.functional.normalize(pixels.float() / 255, [0.5, 0.4, 0.3], [0.2, 0.3, 0.4])
    assert torch.allclose(batch["pixel_values"], expected, atol=1e-6)
    assert batch["labels"].tolist() == [0, 1, 2, 3]


def test_the_saved_processor_does_the_same() -> None:
    preprocessing = Preprocessing((12, 10), [0.5, 0.4, 0.3], [0.2, 0.3, 0.4])
    pixels = images(2, 9, 7)
    theirs = preprocessing.processor()(list(pixels), return_tensors="pt")["pixel_values"]
    assert torch.allclose(preprocessing(pixels), theirs, atol=1e-5)


def test_colours_are_measured_over_all_images() -> None:
    pixels = images(30)
    rows = ImageRows(pixels, np.arange(1, 30, 2), [0] * 15, ["a"] * 15, ["b"] * 15)
    mean, std = measure_colours(rows)
    values = pixels[1::2].double() / 255
    assert mean == pytest.approx(values.mean((0, 2, 3)).tolist(), abs=1e-4)
    assert std == pytest.approx(values.std((0, 2, 3), correction=0).tolist(), abs=1e-4)
    black = ImageRows(torch.zeros_like(pixels), np.arange(3), [0] * 3, ["a"] * 3, ["b"] * 3)
    assert min(measure_colours(black)[1]) > 0


@pytest.mark.parametrize(
    ("key", "value"),
    [("crop_padding", -1), ("randaugment_magnitude", 31), ("erasing", 1.5), ("mixup", -0.1)],
)
def test_settings_out_of_range_are_refused(key: str, value: float) -> None:
    with pytest.raises(UserError, match=f"--augmentation.{key} {value}"):
        Augmentation(AugmentationSettings(**{key: value}), 0)


def test_erased_places_have_the_mean_colour() -> None:
    settings = AugmentationSettings(crop_padding=0, flip=False, erasing=1.0)
    pixels = torch.full((4, 3, 8, 8), 255, dtype=torch.uint8)
    batch = collator(settings)(examples([0, 1, 2, 3], 0, pixels))["pixel_values"]
    erased = (batch == 0).all(1)
    assert ((batch == 0).any(1) == erased).all()  # the same in every colour
    assert (erased.flatten(1).sum(1) >= 1).all()
    assert not erased.flatten(1).all(1).any()
