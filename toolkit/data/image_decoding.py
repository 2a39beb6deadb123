"""Files to pixels: every mode an image file can have becomes red, green and blue of 8 bits."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps

if TYPE_CHECKING:
    from torch import Tensor

Size = tuple[int, int]
"""Height and width in pixels."""

_TURNED = (5, 6, 7, 8)  # orientations in EXIF that swap height and width


@dataclass(frozen=True)
class Decoded:
    """An image and what had to be done to it."""

    pixels: NDArray[np.uint8]  # [height, width, 3]
    changes: Sequence[str]  # of "turned", "transparent", "16-bit", "gray"


def decode(content: bytes) -> Decoded:
    """Read an image file.

    It is turned as its EXIF orientation says, transparency is laid on white, 16 bits are scaled to
    8 (not cut off), one channel is copied to three. Of an animation the first image is taken.

    Raises:
        OSError, ValueError, SyntaxError: what is wrong with the file (Pillow's own errors).
    """
    with Image.open(io.BytesIO(content)) as opened:
        changes = ["turned"] if _orientation(opened) != 1 else []
        image = ImageOps.exif_transpose(opened)
        image.load()
    if image.has_transparency_data:
        changes.append("transparent")
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    elif image.mode in ("I", "I;16", "I;16B", "I;16L", "I;16N"):
        changes.append("16-bit")
        image = Image.fromarray(_to_eight_bits(np.asarray(image)))
    elif image.mode == "F":
        raise ValueError("its pixels are floating point numbers of unknown range")
    if image.mode in ("1", "L"):
        changes.append("gray")
    return Decoded(np.asarray(image.convert("RGB")), changes)


class Head(NamedTuple):
    """What the head of an image file says."""

    mode: str  # Pillow's: L, RGB, RGBA, P, CMYK, ...
    size: Size  # as `decode` gives it


def read_head(content: bytes) -> Head:
    """Mode, height and width, without decoding.

    Raises:
        OSError, ValueError, SyntaxError: what is wrong with the file.
    """
    with Image.open(io.BytesIO(content)) as image:
        width, height = image.size
        turned = _orientation(image) in _TURNED
        return Head(image.mode, (width, height) if turned else (height, width))


def read_size(content: bytes) -> Size:
    """Height and width as `decode` gives them, from the file's head alone.

    Raises:
        OSError, ValueError, SyntaxError: what is wrong with the file.
    """
    return read_head(content).size


def resize(images: Tensor, size: Size) -> Tensor:
    """Bring images [..., channels, height, width] to a size; nothing where they have it.

    As HuggingFace's image processors do it: bilinear, with antialiasing, not keeping proportions.
    """
    if tuple(images.shape[-2:]) == size:
        return images
    from torchvision.transforms.v2 import functional

    return functional.resize(images, list(size), antialias=True)


def to_tensor(pixels: NDArray[np.uint8]) -> Tensor:
    """[height, width, channels] -> [channels, height, width]."""
    import torch  # here, so that a report can decode a few images without it

    return torch.from_numpy(pixels.copy()).permute(2, 0, 1)


def _orientation(image: Image.Image) -> int:
    return int(image.getexif().get(ExifTags.Base.Orientation, 1) or 1)


def _to_eight_bits(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """0 to 65,535 -> 0 to 255.

    Raises:
        ValueError: values outside of 16 bits.
    """
    numbers = values.astype(np.int64)
    if numbers.min() < 0 or numbers.max() > 65535:
        raise ValueError("its pixels are whole numbers of more than 16 bits")
    return np.round(numbers / 257).astype(np.uint8)
