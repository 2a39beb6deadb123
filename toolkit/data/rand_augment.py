"""RandAugment of a whole batch (Cubuk et al. 2020, arXiv:1909.13719), over torchvision's functions.

torchvision's own transform draws one operation for the whole batch. Here every image has its own;
images with the same one are changed together.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torchvision.transforms import v2

STRONGEST = 30
"""Magnitudes are whole numbers from 0 to this one."""

Operation = Callable[[Tensor, float], Tensor]
"""Takes images, uint8 [images, channels, height, width], and a strength."""


def _affine(
    images: Tensor,
    *,
    shear: tuple[float, float] = (0.0, 0.0),
    shift: tuple[int, int] = (0, 0),
    center: list[float] | None = None,
) -> Tensor:
    return v2.functional.affine(
        images, angle=0.0, translate=list(shift), scale=1.0, shear=list(shear), center=center
    )


def _shear_x(images: Tensor, slope: float) -> Tensor:
    return _affine(images, shear=(math.degrees(math.atan(slope)), 0.0), center=[0, 0])


def _shear_y(images: Tensor, slope: float) -> Tensor:
    return _affine(images, shear=(0.0, math.degrees(math.atan(slope))), center=[0, 0])


def _shift_x(images: Tensor, share: float) -> Tensor:
    return _affine(images, shift=(int(share * images.shape[-1]), 0))


def _shift_y(images: Tensor, share: float) -> Tensor:
    return _affine(images, shift=(0, int(share * images.shape[-2])))


def _plain(change: Callable[[Tensor], Tensor]) -> Operation:
    return lambda images, strength: change(images)


def _factor(change: Callable[[Tensor, float], Tensor]) -> Operation:
    return lambda images, strength: change(images, 1.0 + strength)


# Name: operation, its strength at the largest magnitude, whether its sign is drawn. The ranges are
# those of AutoAugment (Cubuk et al. 2019, table 6), which RandAugment takes over.
OPERATIONS: dict[str, tuple[Operation, float, bool]] = {
    "identity": (_plain(lambda images: images), 0.0, False),
    "shear x": (_shear_x, 0.3, True),
    "shear y": (_shear_y, 0.3, True),
    "translate x": (_shift_x, 150 / 331, True),
    "translate y": (_shift_y, 150 / 331, True),
    "rotate": (lambda images, angle: v2.functional.rotate(images, angle), 30.0, True),
    "brightness": (_factor(v2.functional.adjust_brightness), 0.9, True),
    "color": (_factor(v2.functional.adjust_saturation), 0.9, True),
    "contrast": (_factor(v2.functional.adjust_contrast), 0.9, True),
    "sharpness": (_factor(v2.functional.adjust_sharpness), 0.9, True),
    "posterize": (
        lambda images, bits: v2.functional.posterize(images, 8 - round(bits)),
        4.0,
        False,
    ),
    "solarize": (lambda images, s: v2.functional.solarize(images, 255.0 * (1 - s)), 1.0, False),
    "autocontrast": (_plain(v2.functional.autocontrast), 0.0, False),
    "equalize": (_plain(v2.functional.equalize), 0.0, False),
}


def rand_augment(images: Tensor, draws: NDArray[np.float64], magnitude: int) -> Tensor:
    """Change every image by a random operation of its own, as often as there are draws.

    Args:
        images: uint8 [images, 3, height, width].
        draws: numbers in [0, 1), [images, 2 * times]: for every time one that chooses the operation
            and one that chooses its sign.
        magnitude: 0 to `STRONGEST`, the same for all operations.
    """
    names = list(OPERATIONS)
    for chooses, signs in zip(draws[:, ::2].T, draws[:, 1::2].T, strict=True):
        chosen = (chooses * len(names)).astype(np.int64)
        changed = images.clone()
        for number, name in enumerate(names):
            operation, strongest, signed = OPERATIONS[name]
            strength = strongest * magnitude / STRONGEST
            for negative in (False, True) if signed else (False,):
                wanted = chosen == number
                if signed:
                    wanted &= (signs < 0.5) == negative
                rows = torch.from_numpy(np.flatnonzero(wanted))
                if len(rows):
                    changed[rows] = operation(images[rows], -strength if negative else strength)
        images = changed
    return images
