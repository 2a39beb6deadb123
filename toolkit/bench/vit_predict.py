"""Classify images with ViT-B/16."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from scratch_models import optimize_for_inference
from toolkit.bench.agreement import TOLERANCES, agree
from toolkit.bench.case import Case, Program, Side
from toolkit.bench.classes import HUGGINGFACE, OURS
from toolkit.bench.settings import BenchSettings
from toolkit.bench.steps import count_flops, predictions
from toolkit.bench.vit import LOADERS, images, write_vit

BATCH, SIZE, CLASSES = 8, 224, 1000
GOAL = 1.3


def cases(settings: BenchSettings) -> list[Case]:
    """One."""
    layers = 12 if settings.full else 6
    batches = [images(BATCH, SIZE, CLASSES)]

    def ours(folder: Path) -> Program:
        return predictions(optimize_for_inference(LOADERS[OURS](folder)), batches, settings)

    return [
        Case(
            name="vit-predict",
            task=f"{layers} layers of ViT-B/16, {BATCH} images of {SIZE} x {SIZE} pixels",
            sides={
                HUGGINGFACE: Side(
                    lambda folder: predictions(LOADERS[HUGGINGFACE](folder), batches, settings),
                    BATCH,
                ),
                OURS: Side(ours, BATCH),
            },
            ours=OURS,
            prepare=partial(
                write_vit, num_hidden_layers=layers, image_size=SIZE, num_labels=CLASSES
            ),
            check=lambda results, _: agree(
                results, OURS, "logits of all images", TOLERANCES[settings.precision]
            ),
            rows=BATCH,
            units=BATCH,
            unit="images",
            flops=lambda folder: count_flops(predictions(LOADERS[OURS](folder), batches, settings)),
            goals={HUGGINGFACE: GOAL},
            memory=(HUGGINGFACE, OURS),
        )
    ]
