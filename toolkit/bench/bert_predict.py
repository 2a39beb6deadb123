"""Classify texts with BERT: batches in random order, sorted by length, and without padding."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from scratch_models import optimize_for_inference
from toolkit.bench.agreement import TOLERANCES, agree
from toolkit.bench.bert import LOADERS, write_bert
from toolkit.bench.case import Case, Program, Side
from toolkit.bench.classes import HUGGINGFACE, OURS
from toolkit.bench.settings import BenchSettings
from toolkit.bench.steps import count_flops, predictions
from toolkit.bench.texts import (
    BATCH,
    Lengths,
    count_tokens,
    full_batches,
    make_batches,
    random_batches,
    sorted_batches,
)

GOALS = {"random batches": 3.2, "no padding": 1.25}


def cases(settings: BenchSettings) -> list[Case]:
    """One for every way to make batches."""
    count = 4 if settings.full else 1
    kinds = {
        "random batches": random_batches(count),
        "sorted batches": sorted_batches(count),
        "no padding": full_batches(count),
    }
    return [_case(kind, lengths, settings) for kind, lengths in kinds.items()]


def _case(kind: str, lengths: Lengths, settings: BenchSettings) -> Case:
    layers = 12 if settings.full else 4
    real, padded = count_tokens(lengths)
    batches = make_batches(lengths)

    def ours(folder: Path) -> Program:
        return predictions(optimize_for_inference(LOADERS[OURS](folder)), batches, settings)

    return Case(
        name=f"bert-predict, {kind}",
        task=f"{layers} layers as wide as BERT-base, {len(lengths)} x {BATCH} texts, "
        f"{kind}, padded/real {padded / real:.2f}",
        sides={
            HUGGINGFACE: Side(
                lambda folder: predictions(LOADERS[HUGGINGFACE](folder), batches, settings), padded
            ),
            OURS: Side(ours, real),
        },
        ours=OURS,
        prepare=partial(write_bert, layers=layers),
        check=lambda results, _: agree(
            results, OURS, "logits of all texts", TOLERANCES[settings.precision]
        ),
        rows=len(lengths) * BATCH,
        units=real,
        flops=lambda folder: count_flops(predictions(LOADERS[OURS](folder), batches, settings)),
        goals={HUGGINGFACE: GOALS[kind]} if kind in GOALS else {},
        memory=(HUGGINGFACE, OURS) if kind == "random batches" else (),
    )
