"""From an image to tokens: patches, a class token, learned positions (ViT, §3.1, equation 1)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.utils import logging

logger = logging.get_logger(__name__)

Size = tuple[int, int]
"""Height and width, in pixels; or rows and columns, in patches."""


def as_size(value: int | Sequence[int]) -> Size:
    """A number for both sides or a pair (height, width), as configs state them."""
    height, width = (value, value) if isinstance(value, int) else value
    return height, width


def dropped_pixels(image_size: Size, patch_size: Size) -> Size:
    """Pixels at the bottom and at the right that fill no whole patch."""
    return image_size[0] % patch_size[0], image_size[1] % patch_size[1]


def as_text(size: Size) -> str:
    """(30, 40) -> "30x40"."""
    return f"{size[0]}x{size[1]}"


def check_whole_patches(image_size: Size, patch_size: Size) -> None:
    """Refuse an image that is not whole patches.

    Raises:
        ValueError: naming both sizes and the pixels that would be dropped.
    """
    bottom, right = dropped_pixels(image_size, patch_size)
    if bottom or right:
        raise ValueError(
            f"image_size {as_text(image_size)} is not a multiple of patch_size "
            f"{as_text(patch_size)} (height x width): {bottom} pixels at the bottom and {right} "
            f"at the right would never be seen. Choose sizes that divide."
        )


def warn_of_dropped_pixels(image_size: Size, patch_size: Size) -> None:
    """Say once a process, for every size, which pixels are never seen."""
    bottom, right = dropped_pixels(image_size, patch_size)
    if (bottom or right) and not torch.compiler.is_compiling():
        logger.warning_once(
            f"Images of {as_text(image_size)} pixels (height x width) are not a multiple of the "
            f"patch size {as_text(patch_size)}: {bottom} pixels at the bottom and {right} at the "
            f"right are dropped."
        )


def interpolate_positions(positions: Tensor, trained: Size, grid: Size) -> Tensor:
    """Position vectors of the patches of another grid, by bicubic interpolation (§3.2).

    Args:
        positions: [1, rows * columns, hidden_size], row by row.
        trained: rows and columns they were trained on.
        grid: rows and columns wanted.

    Returns:
        [1, rows * columns, hidden_size] of `grid`.
    """
    if trained == grid:
        return positions
    as_image = positions.transpose(1, 2).unflatten(2, trained)
    resized = F.interpolate(as_image, size=grid, mode="bicubic", align_corners=False)
    return resized.flatten(2).transpose(1, 2)


class PatchEmbeddings(nn.Module):
    """[x_class; x_p^1 E; …; x_p^N E] + E_pos (equation 1): an image as a sequence of tokens.

    The linear map E of flattened patches is a convolution whose stride is its kernel. Pixels at the
    bottom and the right that fill no whole patch are dropped, with one warning for every size.

    Args:
        image_size: height and width in pixels of the images the positions are for.
        patch_size: height and width of a patch in pixels.
        num_channels: of the images.
        hidden_size: width of the tokens.
        dropout: probability, after the positions.
    """

    def __init__(
        self,
        image_size: Size,
        patch_size: Size,
        num_channels: int,
        hidden_size: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.image_size = image_size
        self.patch_size = patch_size
        self.num_channels = num_channels
        self.grid = (image_size[0] // patch_size[0], image_size[1] // patch_size[1])
        tokens = 1 + self.grid[0] * self.grid[1]
        self.class_token = nn.Parameter(torch.randn(1, 1, hidden_size))
        self.projection = nn.Conv2d(num_channels, hidden_size, patch_size, stride=patch_size)
        self.position = nn.Parameter(torch.randn(1, tokens, hidden_size))
        self.dropout = nn.Dropout(dropout)

    def forward(self, pixel_values: Tensor, interpolate: bool = False) -> Tensor:
        """[batch, channels, height, width] -> [batch, 1 + patches, hidden_size].

        Args:
            pixel_values: of any dtype; cast to that of the weights.
            interpolate: take images of any size and interpolate the positions for them.

        Raises:
            ValueError: for another rank or number of channels, for an image smaller than a patch,
                and without `interpolate` for another size.
        """
        self.check(pixel_values, interpolate)
        patches = self.projection(pixel_values.to(self.projection.weight.dtype))
        grid = (patches.shape[2], patches.shape[3])
        class_token = self.class_token.expand(len(patches), -1, -1)
        tokens = torch.cat([class_token, patches.flatten(2).transpose(1, 2)], dim=1)
        return self.dropout(tokens + self.positions(grid))

    def positions(self, grid: Size) -> Tensor:
        """Position vectors [1, 1 + rows * columns, hidden_size] for a grid of patches."""
        if grid == self.grid:
            return self.position
        of_class, of_patches = self.position[:, :1], self.position[:, 1:]
        return torch.cat([of_class, interpolate_positions(of_patches, self.grid, grid)], dim=1)

    def check(self, pixel_values: Tensor, interpolate: bool) -> None:
        """Raise ValueError for images that do not fit, warn of those that do not fit whole."""
        if pixel_values.ndim != 4:
            raise ValueError(
                f"pixel_values is {list(pixel_values.shape)}; expected "
                f"[batch, channels, height, width]."
            )
        channels, height, width = pixel_values.shape[1:]
        if channels != self.num_channels:
            raise ValueError(
                f"pixel_values has {channels} channels but the model was built for "
                f"{self.num_channels} (num_channels): convert the images."
            )
        size = (height, width)
        if not interpolate and size != self.image_size:
            raise ValueError(
                f"images of {as_text(size)} pixels (height x width) but the model has positions "
                f"for {as_text(self.image_size)}: resize them, or pass "
                f"interpolate_pos_encoding=True to interpolate the positions."
            )
        if height < self.patch_size[0] or width < self.patch_size[1]:
            raise ValueError(
                f"images of {as_text(size)} pixels (height x width) are smaller than a patch "
                f"({as_text(self.patch_size)}): enlarge them."
            )
        warn_of_dropped_pixels(size, self.patch_size)
