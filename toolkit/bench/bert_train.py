"""Training steps of BERT on texts: batches in random order, and sorted by length."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from toolkit.bench.bert import LOADERS, NO_DROPOUT, write_bert
from toolkit.bench.case import Case, Program, Side
from toolkit.bench.classes import HUGGINGFACE, OURS, learn_the_same
from toolkit.bench.settings import BenchSettings
from toolkit.bench.steps import count_flops, training
from toolkit.bench.texts import (
    BATCH,
    Lengths,
    count_tokens,
    make_batches,
    random_batches,
    sorted_batches,
)

GOALS = {"random batches": 2.7, "sorted batches": 1.3}
COMPARED = 8
"""Texts whose losses are compared."""


def cases(settings: BenchSettings) -> list[Case]:
    """One for every way to make batches."""
    count = 2 if settings.full else 1
    kinds = {"random batches": random_batches(count), "sorted batches": sorted_batches(count)}
    return [_case(kind, lengths, settings) for kind, lengths in kinds.items()]


def _case(kind: str, lengths: Lengths, settings: BenchSettings) -> Case:
    layers = 12 if settings.full else 4
    real, padded = count_tokens(lengths)
    batches = make_batches(lengths)
    few = make_batches([lengths[0][:COMPARED]])

    def check(_: Any, folder: Path) -> Mapping[str, Any]:
        what = f"{COMPARED} texts without dropout"
        compared = dict.fromkeys(LOADERS, few)
        return learn_the_same(LOADERS, folder, compared, what, settings, **NO_DROPOUT)

    def program(name: str, folder: Path) -> Program:
        return training(LOADERS[name](folder), batches, settings)

    return Case(
        name=f"bert-train, {kind}",
        task=f"{layers} layers as wide as BERT-base, dropout 0.1, fused AdamW, steps of "
        f"{BATCH} texts ({len(lengths)}), {kind}, padded/real {padded / real:.2f}",
        sides={
            name: Side(partial(program, name), real if name == OURS else padded) for name in LOADERS
        },
        ours=OURS,
        prepare=partial(write_bert, layers=layers),
        check=check,
        rows=len(lengths) * BATCH,
        units=real,
        flops=lambda folder: count_flops(training(LOADERS[OURS](folder), batches, settings)),
        goals={HUGGINGFACE: GOALS[kind]},
        memory=(HUGGINGFACE, OURS) if kind == "random batches" else (),
        memory_goal=0.6 if kind == "random batches" else None,
    )
