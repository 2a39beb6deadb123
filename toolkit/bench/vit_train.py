"""Training steps of a small ViT for CIFAR-10."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from toolkit.bench.agreement import TOLERANCES, agree
from toolkit.bench.case import Case, Program, Side
from toolkit.bench.settings import BenchSettings
from toolkit.bench.steps import count_flops, plain_descent, training
from toolkit.bench.vit import HUGGINGFACE, OURS, images, load_huggingface, load_ours, write_vit

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
    loaders: Mapping[str, Callable[..., Any]] = {HUGGINGFACE: load_huggingface, OURS: load_ours}

    def check(_: Any, folder: Path) -> dict[str, float | str]:
        losses = {
            name: plain_descent(load(folder), few, settings) for name, load in loaders.items()
        }
        what = f"losses of {COMPARED} images, before and after a step of gradient descent"
        return agree(losses, OURS, what, TOLERANCES[settings.precision])

    def program(name: str, folder: Path) -> Program:
        return training(loaders[name](folder), batches, settings)

    return [
        Case(
            name="vit-train",
            task=f"a ViT of 6 layers, width 384, patches of 4 pixels, fused AdamW, a step of "
            f"{batch} images of 32 x 32 pixels",
            sides={name: Side(partial(program, name), batch) for name in loaders},
            ours=OURS,
            prepare=partial(write_vit, **SHAPE),
            check=check,
            rows=batch,
            units=batch,
            unit="images",
            flops=lambda folder: count_flops(training(load_ours(folder), batches, settings)),
            goals={HUGGINGFACE: GOAL},
            memory=(HUGGINGFACE, OURS),
        )
    ]
