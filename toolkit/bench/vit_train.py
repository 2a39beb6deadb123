"""Training steps of a small ViT for CIFAR-10."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from toolkit.bench.case import Case, Program, Side
from toolkit.bench.classes import HUGGINGFACE, OURS, learn_the_same
from toolkit.bench.settings import BenchSettings
from toolkit.bench.steps import count_flops, training
from toolkit.bench.vit import LOADERS, images, write_vit

SHAPE: dict[str, Any] = {
    "hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 6,
    "intermediate_size": 1536, "image_size": 32, "patch_size": 4, "num_labels": 10,
}  # fmt: skip
GOAL = 1.15
COMPARED = 8
"""Images whose losses are compared."""


def cases(settings: BenchSettings) -> list[Case]:
    """One."""
    batch = 128 if settings.full else 64
    batches = [images(batch, SHAPE["image_size"], SHAPE["num_labels"])]
    few = [{name: part[:COMPARED] for name, part in batches[0].items()}]

    def check(_: Any, folder: Path) -> Mapping[str, Any]:
        compared = dict.fromkeys(LOADERS, few)
        return learn_the_same(LOADERS, folder, compared, f"{COMPARED} images", settings)

    def program(name: str, folder: Path) -> Program:
        return training(LOADERS[name](folder), batches, settings)

    return [
        Case(
            name="vit-train",
            task=f"a ViT of 6 layers, width 384, patches of 4 pixels, fused AdamW, a step of "
            f"{batch} images of 32 x 32 pixels",
            sides={name: Side(partial(program, name), batch) for name in LOADERS},
            ours=OURS,
            prepare=partial(write_vit, **SHAPE),
            check=check,
            rows=batch,
            units=batch,
            unit="images",
            flops=lambda folder: count_flops(training(LOADERS[OURS](folder), batches, settings)),
            goals={HUGGINGFACE: GOAL},
            memory=(HUGGINGFACE, OURS),
        )
    ]
