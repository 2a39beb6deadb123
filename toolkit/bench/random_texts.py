"""Random texts for the benchmarks of the training loop, and the least that trains on them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from toolkit.batching import Rows, load_batches, plan_epoch

LONGEST, BATCH, VOCABULARY = 48, 16, 1000


def make_rows(lengths: Any, seed: int) -> Any:
    """Random texts and labels."""
    import datasets
    import numpy as np

    generator = np.random.default_rng(seed)
    return datasets.Dataset.from_dict(
        {
            "input_ids": [generator.integers(5, VOCABULARY, n).tolist() for n in lengths],
            "label": generator.integers(0, 2, len(lengths)).tolist(),
            "length": [int(n) for n in lengths],
        }
    )


def collate(examples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """A padded batch."""
    ids = [torch.tensor(row["input_ids"]) for row in examples]
    padded = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
    batch = {
        "input_ids": padded,
        "attention_mask": (padded != 0).long(),
        "labels": torch.tensor([row["label"] for row in examples]),
    }
    if "index" in examples[0]:
        batch["index"] = torch.tensor([row["index"] for row in examples])
    return batch


def bare_steps(model: nn.Module, rows: Any, device: str) -> float:
    """An epoch of forward, backward and fused AdamW at rate 0; the mean loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, fused=True)
    losses = []
    for batch in load_batches(Rows(rows), plan_epoch(len(rows), BATCH, 0, 0), collate):
        batch.pop("index")
        loss = model(**{name: value.to(device) for name, value in batch.items()}).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return float(torch.stack(losses).mean())
