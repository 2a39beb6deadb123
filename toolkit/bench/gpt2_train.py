"""Training steps of GPT-2: on full blocks, and on documents of different lengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from toolkit.bench.agreement import TOLERANCES, agree
from toolkit.bench.case import Case, Program, Side
from toolkit.bench.gpt2 import (
    END_OF_TEXT,
    HUGGINGFACE,
    OURS,
    load_huggingface,
    load_ours,
    write_gpt2,
)
from toolkit.bench.settings import BenchSettings
from toolkit.bench.steps import Batches, count_flops, plain_descent, training
from toolkit.bench.texts import review_lengths

BLOCKS, BLOCK = 4, 512
DOCUMENTS = 16
GOAL, MEMORY_GOAL = 1.15, 0.9
NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}


def cases(settings: BenchSettings) -> list[Case]:
    """Blocks, and documents."""
    generator = torch.Generator().manual_seed(0)
    blocks = torch.randint(0, END_OF_TEXT, (BLOCKS, BLOCK), generator=generator)
    block_batch = {"input_ids": blocks, "labels": blocks}
    lengths = review_lengths(DOCUMENTS) * 2
    texts = [torch.randint(0, END_OF_TEXT, (int(n),), generator=generator) for n in lengths]
    real, padded = int(lengths.sum()), int(lengths.max()) * DOCUMENTS
    return [
        _case(
            f"{BLOCKS} blocks", f"{BLOCKS} blocks of {BLOCK} tokens",
            {HUGGINGFACE: [block_batch], OURS: [block_batch | {"loss_only": True}]},
            {HUGGINGFACE: BLOCKS * BLOCK, OURS: BLOCKS * BLOCK}, BLOCKS, settings, GOAL,
        ),
        _case(
            f"{DOCUMENTS} documents", f"{DOCUMENTS} documents, padded/real {padded / real:.2f}",
            {HUGGINGFACE: [pad(texts)], OURS: [pack(texts) | {"loss_only": True}]},
            {HUGGINGFACE: padded, OURS: real}, DOCUMENTS, settings, None,
        ),
    ]  # fmt: skip


def pad(texts: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    """Documents as rows, labels -100 at padding."""
    rows = partial(torch.nn.utils.rnn.pad_sequence, texts, batch_first=True)
    ids, labels = rows(padding_value=END_OF_TEXT), rows(padding_value=-100)
    return {"input_ids": ids, "attention_mask": (labels != -100).long(), "labels": labels}


def pack(texts: list[torch.Tensor]) -> dict[str, Any]:
    """Documents one after the other; the first token of each is nobody's next."""
    labels = [torch.cat([text.new_tensor([-100]), text[1:]]) for text in texts]
    return {
        "input_ids": torch.cat(texts)[None],
        "sequence_lengths": [len(text) for text in texts],
        "labels": torch.cat(labels)[None],
    }


def _case(
    kind: str,
    task: str,
    batches: Mapping[str, Batches],
    positions: Mapping[str, int],
    rows: int,
    settings: BenchSettings,
    goal: float | None,
) -> Case:
    layers = 12 if settings.full else 4
    loaders: Mapping[str, Callable[..., Any]] = {HUGGINGFACE: load_huggingface, OURS: load_ours}

    def check(_: Any, folder: Path) -> dict[str, float | str]:
        losses = {
            name: plain_descent(load(folder, **NO_DROPOUT), batches[name], settings)
            for name, load in loaders.items()
        }
        what = "losses of gradient descent without dropout, before and after a step"
        return agree(losses, OURS, what, TOLERANCES[settings.precision])

    def program(name: str, folder: Path) -> Program:
        return training(loaders[name](folder), batches[name], settings)

    return Case(
        name=f"gpt2-train, {kind}",
        task=f"{layers} layers as wide as GPT-2 small, dropout 0.1, fused AdamW, a step of {task}",
        sides={name: Side(partial(program, name), positions[name]) for name in loaders},
        ours=OURS,
        prepare=partial(write_gpt2, layers=layers),
        check=check,
        rows=rows,
        units=positions[OURS],
        flops=lambda folder: count_flops(
            training(
                load_ours(folder),
                [{k: v for k, v in b.items() if k != "loss_only"} for b in batches[OURS]],
                settings,
            )
        ),
        goals={} if goal is None else {HUGGINGFACE: goal},
        memory=(HUGGINGFACE, OURS) if goal is not None else (),
        memory_goal=MEMORY_GOAL if goal is not None else None,
    )
