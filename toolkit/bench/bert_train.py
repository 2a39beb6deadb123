"""Training steps of BERT on texts: batches in random order, and sorted by length."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from toolkit.bench.agreement import TOLERANCES, agree
from toolkit.bench.bert import HUGGINGFACE, OURS, load_huggingface, load_ours, write_bert
from toolkit.bench.case import Case, Program, Side
from toolkit.bench.settings import BenchSettings
from toolkit.bench.steps import count_flops, plain_descent, training
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
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


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
    loaders: Mapping[str, Callable[..., Any]] = {HUGGINGFACE: load_huggingface, OURS: load_ours}

    def check(_: Any, folder: Path) -> dict[str, float | str]:
        losses = {
            name: plain_descent(load(folder, **NO_DROPOUT), few, settings)
            for name, load in loaders.items()
        }
        what = f"losses of {COMPARED} texts without dropout, before and after a step of descent"
        return agree(losses, OURS, what, TOLERANCES[settings.precision])

    def program(name: str, folder: Path) -> Program:
        return training(loaders[name](folder), batches, settings)

    return Case(
        name=f"bert-train, {kind}",
        task=f"{layers} layers as wide as BERT-base, dropout 0.1, fused AdamW, steps of "
        f"{BATCH} texts ({len(lengths)}), {kind}, padded/real {padded / real:.2f}",
        sides={
            name: Side(partial(program, name), real if name == OURS else padded) for name in loaders
        },
        ours=OURS,
        prepare=partial(write_bert, layers=layers),
        check=check,
        rows=len(lengths) * BATCH,
        units=real,
        flops=lambda folder: count_flops(training(load_ours(folder), batches, settings)),
        goals={HUGGINGFACE: GOALS[kind]},
        memory=(HUGGINGFACE, OURS) if kind == "random batches" else (),
        memory_goal=0.6 if kind == "random batches" else None,
    )
