"""Random changes of a whole batch of training images at once.

Every image has random numbers of its own, which depend on seed, epoch and row only: its crop is the
same in whatever batch or process it comes, and in a resumed run. What mixes images depends on the
first row of the batch besides.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from toolkit.data.augmentation_config import AugmentationSettings
from toolkit.data.rand_augment import rand_augment
from toolkit.data.randomness import uniforms

# What random numbers are for.
CROP, RAND_AUGMENT, ERASE, MIX = range(4)

# Random erasing (Zhong et al. 2020, arXiv:1708.04896, section 4.2): shares of the image's area, and
# the narrowest shape (height to width; the widest is its inverse).
SMALLEST, LARGEST, NARROWEST = 0.02, 0.33, 0.3


class Augmentation:
    """The changes that settings ask for, as functions of a batch.

    Args:
        settings: which ones, and how strong.
        seed: of the run.
    """

    def __init__(self, settings: AugmentationSettings, seed: int) -> None:
        settings.check()
        self.settings, self.seed = settings, seed

    def change_pixels(self, images: Tensor, rows: NDArray[np.int64], epoch: int) -> Tensor:
        """Crop, mirror and RandAugment; uint8 [images, 3, height, width], before normalisation."""
        settings = self.settings
        if settings.crop_padding or settings.flip:
            draws = uniforms(self.seed, epoch, rows, CROP, 3)
            images = crop_and_flip(images, draws, settings.crop_padding, settings.flip)
        if settings.randaugment:
            draws = uniforms(self.seed, epoch, rows, RAND_AUGMENT, 2 * settings.randaugment)
            images = rand_augment(images, draws, settings.randaugment_magnitude)
        return images

    def erase(self, images: Tensor, rows: NDArray[np.int64], epoch: int) -> Tensor:
        """Random erasing; normalised float [images, 3, height, width], where 0 is the mean."""
        if not self.settings.erasing:
            return images
        return erase(images, uniforms(self.seed, epoch, rows, ERASE, 5), self.settings.erasing)

    def mix(
        self, images: Tensor, targets: Tensor, rows: NDArray[np.int64], epoch: int
    ) -> tuple[Tensor, Tensor]:
        """Mixup or CutMix of every image with the one before it in the batch, if any is on.

        Args:
            images: float [images, 3, height, width].
            targets: probabilities, float [images, classes].

        Returns:
            The mixed images and targets; each row of targets sums to 1.
        """
        mixup_alpha, cutmix_alpha = self.settings.mixup, self.settings.cutmix
        if not mixup_alpha and not cutmix_alpha:
            return images, targets
        # A row comes once in an epoch: the first one names the batch.
        generator = np.random.default_rng([self.seed, MIX, epoch, int(rows[0])])
        use_mixup = mixup_alpha > 0 and (cutmix_alpha == 0 or generator.random() < 0.5)
        if use_mixup:
            share = float(generator.beta(mixup_alpha, mixup_alpha))
            return mixup(images, share), _mixed(targets, share)
        share = float(generator.beta(cutmix_alpha, cutmix_alpha))
        images, share = cutmix(images, share, generator.random(2))
        return images, _mixed(targets, share)


def crop_and_flip(images: Tensor, draws: NDArray[np.float64], padding: int, flip: bool) -> Tensor:
    """Pad with black, cut the original size out at a random place, mirror half of the images.

    Args:
        images: [images, channels, height, width].
        draws: numbers in [0, 1), [images, 3]: for the place down, the place across, the mirror.
    """
    height, width = images.shape[-2:]
    padded = F.pad(images, [padding] * 4)
    places = torch.from_numpy((draws[:, :2] * (2 * padding + 1)).astype(np.int64))
    down = places[:, :1] + torch.arange(height)  # [images, height]
    across = torch.arange(width).expand(len(images), width)
    if flip:
        mirrored = torch.from_numpy(draws[:, 2:] < 0.5)
        across = torch.where(mirrored, width - 1 - across, across)
    across = across + places[:, 1:]
    which = torch.arange(len(images))[:, None, None]
    # Indices around a slice put the channels last.
    chosen = padded[which, :, down[:, :, None], across[:, None, :]]
    return chosen.permute(0, 3, 1, 2)


def erase(images: Tensor, draws: NDArray[np.float64], probability: float) -> Tensor:
    """Set a random rectangle to 0 in a random part of the images.

    The paper draws again where a rectangle does not fit; here it is cut to the image.

    Args:
        images: [images, channels, height, width].
        draws: numbers in [0, 1), [images, 5]: for whether, area, shape, place down, place across.
    """
    height, width = images.shape[-2:]
    area = height * width * (SMALLEST + draws[:, 1] * (LARGEST - SMALLEST))
    shape = np.exp((2 * draws[:, 2] - 1) * np.log(1 / NARROWEST))
    tall = np.clip(np.round(np.sqrt(area * shape)), 1, height)
    wide = np.clip(np.round(np.sqrt(area / shape)), 1, width)
    top = np.floor(draws[:, 3] * (height - tall + 1))
    left = np.floor(draws[:, 4] * (width - wide + 1))
    y, x = np.arange(height)[None, :, None], np.arange(width)[None, None, :]

    def column(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values[:, None, None]

    inside = (y >= column(top)) & (y < column(top + tall))
    inside = inside & (x >= column(left)) & (x < column(left + wide))
    inside &= column(draws[:, 0]) < probability
    return images.masked_fill(torch.from_numpy(inside)[:, None], 0)


def mixup(images: Tensor, share: float) -> Tensor:
    """share * image + (1 - share) * the one before it (Zhang et al. 2018, arXiv:1710.09412)."""
    return images * share + images.roll(1, 0) * (1 - share)


def cutmix(images: Tensor, share: float, draws: NDArray[np.float64]) -> tuple[Tensor, float]:
    """Paste a rectangle of the image before into each (Yun et al. 2019, arXiv:1905.04899, §3.1).

    Args:
        images: [images, channels, height, width].
        share: of the area that is to stay.
        draws: two numbers in [0, 1) for the centre; the rectangle is cut at the image's border.

    Returns:
        The images, and the share of the area that has stayed.
    """
    height, width = images.shape[-2:]
    side = np.sqrt(1 - share)
    middle = (int(draws[0] * height), int(draws[1] * width))
    half = (int(side * height) // 2, int(side * width) // 2)
    top, left = (max(m - h, 0) for m, h in zip(middle, half, strict=True))
    bottom, right = min(middle[0] + half[0], height), min(middle[1] + half[1], width)
    mixed = images.clone()
    mixed[..., top:bottom, left:right] = images.roll(1, 0)[..., top:bottom, left:right]
    return mixed, 1 - (bottom - top) * (right - left) / (height * width)


def _mixed(targets: Tensor, share: float) -> Tensor:
    return targets * share + targets.roll(1, 0) * (1 - share)
