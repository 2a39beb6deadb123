"""Training steps of GPT-2: on full blocks, and on documents of different lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from toolkit.bench.case import Case, Program, Side
from toolkit.bench.classes import HUGGINGFACE, OURS, learn_the_same
from toolkit.bench.gpt2 import END_OF_TEXT, LOADERS, write_gpt2
from toolkit.bench.settings import BenchSettings
from toolkit.bench.steps import count_flops, training
from toolkit.bench.texts import review_lengths

BLOCKS, BLOCK, DOCUMENTS = 4, 512, 16
"""Of the reference size; half as many by default."""
COMPARED = 2
"""Texts whose losses are compared."""
GOAL, MEMORY_GOAL = 1.15, 0.9
NO_DROPOUT: dict[str, Any] = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}

Batch = dict[str, Any]


@dataclass(frozen=True)
class Texts:
    """What is trained on, in words and as a batch of either side."""

    task: str
    rows: int
    batches: Mapping[str, Batch]
    compared: Mapping[str, Batch]
    positions: Mapping[str, int]


def cases(settings: BenchSettings) -> list[Case]:
    """Blocks, and documents."""
    share = 1 if settings.full else 2
    return [
        _case("blocks", blocks(BLOCKS // share), settings, goal=True),
        _case("documents", documents(DOCUMENTS // share), settings, goal=False),
    ]


def blocks(count: int) -> Texts:
    """Rows of one length."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, END_OF_TEXT, (count, BLOCK), generator=generator)

    def sides(some: Tensor) -> dict[str, Batch]:
        batch = {"input_ids": some, "labels": some}
        return {HUGGINGFACE: batch, OURS: batch | {"loss_only": True}}

    return Texts(
        f"{count} blocks of {BLOCK} tokens", count, sides(ids), sides(ids[:COMPARED]),
        {HUGGINGFACE: ids.numel(), OURS: ids.numel()},
    )  # fmt: skip


def documents(count: int) -> Texts:
    """Texts twice as long as reviews: HuggingFace's are padded, ours packed."""
    generator = torch.Generator().manual_seed(0)
    lengths = review_lengths(count) * 2
    texts = [torch.randint(0, END_OF_TEXT, (int(n),), generator=generator) for n in lengths]
    real, padded = int(lengths.sum()), int(lengths.max()) * count

    def sides(some: list[Tensor]) -> dict[str, Batch]:
        return {HUGGINGFACE: pad(some), OURS: pack(some)}

    return Texts(
        f"{count} documents, padded/real {padded / real:.2f}", count, sides(texts),
        sides(texts[:COMPARED]), {HUGGINGFACE: padded, OURS: real},
    )  # fmt: skip


def pad(texts: list[Tensor]) -> Batch:
    """Documents as rows, labels -100 at padding."""
    rows = partial(torch.nn.utils.rnn.pad_sequence, texts, batch_first=True)
    ids, labels = rows(padding_value=END_OF_TEXT), rows(padding_value=-100)
    return {"input_ids": ids, "attention_mask": (labels != -100).long(), "labels": labels}


def pack(texts: list[Tensor]) -> Batch:
    """Documents one after the other; the first token of each is nobody's next."""
    labels = [torch.cat([text.new_tensor([-100]), text[1:]]) for text in texts]
    return {
        "input_ids": torch.cat(texts)[None],
        "sequence_lengths": [len(text) for text in texts],
        "labels": torch.cat(labels)[None],
        "loss_only": True,
    }


def _case(kind: str, texts: Texts, settings: BenchSettings, goal: bool) -> Case:
    layers = 12 if settings.full else 4

    def check(_: Any, folder: Path) -> Mapping[str, Any]:
        compared = {name: [batch] for name, batch in texts.compared.items()}
        what = f"{COMPARED} texts without dropout"
        return learn_the_same(LOADERS, folder, compared, what, settings, **NO_DROPOUT)

    def program(name: str, folder: Path) -> Program:
        return training(LOADERS[name](folder), [texts.batches[name]], settings)

    return Case(
        name=f"gpt2-train, {kind}",
        task=f"{layers} layers as wide as GPT-2 small, dropout 0.1, fused AdamW, a step of "
        f"{texts.task}",
        sides={name: Side(partial(program, name), texts.positions[name]) for name in LOADERS},
        ours=OURS,
        prepare=partial(write_gpt2, layers=layers),
        check=check,
        rows=texts.rows,
        units=texts.positions[OURS],
        flops=lambda folder: count_flops(program(OURS, folder)),
        goals={HUGGINGFACE: GOAL} if goal else {},
        memory=(HUGGINGFACE, OURS) if goal else (),
        memory_goal=MEMORY_GOAL if goal else None,
    )
