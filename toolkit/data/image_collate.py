"""Stored images to batches: augmented in training, at the model's size, normalised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from toolkit.data.augmentation import Augmentation
from toolkit.data.image_decoding import Size, resize
from toolkit.data.images import ImageData, ImageRows

MOST_MEASURED = 10_000
"""Images that are enough to measure mean and deviation."""


@dataclass(frozen=True)
class Preprocessing:
    """What every image goes through before the model, in training and afterwards.

    Args:
        size: height and width the model takes.
        mean, std: of red, green and blue between 0 and 1.
    """

    size: Size
    mean: list[float]
    std: list[float]

    def __call__(self, images: Tensor) -> Tensor:
        """uint8 [images, 3, any, any] -> normalised float32 [images, 3, height, width]."""
        mean, std = (torch.tensor(values).view(3, 1, 1) for values in (self.mean, self.std))
        scaled = resize(images, self.size).float().div_(255).sub_(mean).div_(std)
        # Channels last in memory: convolutions are a third faster, everything else the same.
        return scaled.contiguous(memory_format=torch.channels_last)

    def processor(self) -> Any:
        """The same as an image processor of HuggingFace, to be saved with the model."""
        from transformers import ViTImageProcessor

        height, width = self.size
        return ViTImageProcessor(
            size={"height": height, "width": width},
            image_mean=self.mean,
            image_std=self.std,
            do_convert_rgb=True,
        )


def measure_preprocessing(data: ImageData, image_size: int | None) -> Preprocessing:
    """What a new model is to see: the training images' own colours, at their size or another.

    Args:
        image_size: height and width in pixels; None: those of the stored images.
    """
    size = data.size if image_size is None else (image_size, image_size)
    return Preprocessing(size, *measure_colours(data.train))


def measure_colours(rows: ImageRows) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of red, green and blue over training images, between 0 and 1."""
    counts = np.zeros((3, 256), dtype=np.int64)
    for start in range(0, min(len(rows), MOST_MEASURED), 1000):
        chosen = range(start, min(start + 1000, len(rows), MOST_MEASURED))
        pixels = rows[chosen]["pixels"].numpy()
        for channel in range(3):
            counts[channel] += np.bincount(pixels[:, channel].ravel(), minlength=256)
    shares, values = counts / counts.sum(1, keepdims=True), np.arange(256) / 255
    mean = shares @ values
    variance = shares @ values**2 - mean**2
    # One grey for all images has no deviation: one of 255 steps, so that it can be divided by.
    std = np.sqrt(np.maximum(variance, 255.0**-2))
    return [round(float(m), 4) for m in mean], [round(float(s), 4) for s in std]


class ImageCollator:
    """Rows {pixels, label, index, epoch} to pixel_values, labels and index.

    pixel_values are float32 [batch, 3, height, width]. labels are int64 [batch]; where images are
    mixed they are probabilities, float32 [batch, classes].

    Args:
        preprocessing: size and normalisation.
        augmentation: random changes, for training.
        num_labels: classes.
    """

    def __init__(
        self,
        preprocessing: Preprocessing,
        augmentation: Augmentation | None = None,
        num_labels: int = 0,
    ) -> None:
        self.preprocessing, self.augmentation = preprocessing, augmentation
        self.num_labels = num_labels

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        """One batch."""
        images = torch.stack([row["pixels"] for row in examples])
        index = np.array([row["index"] for row in examples], dtype=np.int64)
        labels = torch.tensor([row["label"] for row in examples], dtype=torch.int64)
        change, epoch = self.augmentation, int(examples[0]["epoch"])
        if change is None:
            images = self.preprocessing(images)
        else:
            images = self.preprocessing(change.change_pixels(images, index, epoch))
            images = change.erase(images, index, epoch)
            if change.settings.mixup or change.settings.cutmix:
                targets = F.one_hot(labels, self.num_labels).float()
                images, labels = change.mix(images, targets, index, epoch)
        return {"pixel_values": images, "labels": labels, "index": torch.from_numpy(index)}
