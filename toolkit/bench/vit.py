"""The ViTs of the benchmarks: checkpoints with random weights, in both classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from toolkit.bench.classes import loaders

LOADERS = loaders("ViTForImageClassification")


def write_vit(folder: Path, **settings: Any) -> None:
    """A classifier of the given `ViTConfig`; the same weights every time."""
    from transformers import ViTConfig, ViTForImageClassification

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = ViTForImageClassification(ViTConfig(**settings))
        with torch.no_grad():
            model.classifier.weight.normal_(std=0.2)
    model.save_pretrained(folder)


def images(count: int, size: int, classes: int) -> dict[str, torch.Tensor]:
    """Noise, and labels."""
    generator = torch.Generator().manual_seed(0)
    return {
        "pixel_values": torch.randn(count, 3, size, size, generator=generator),
        "labels": torch.randint(0, classes, (count,), generator=generator),
    }
