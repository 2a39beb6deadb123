"""Programs that run a model over batches: to predict, or to train; the same for every side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from toolkit.bench.case import Program
from toolkit.bench.settings import BenchSettings
from toolkit.compute import FlopCounter

Batches = Sequence[Mapping[str, Any]]


def predictions(model: nn.Module, batches: Batches, settings: BenchSettings) -> Program:
    """Logits of every batch, in evaluation mode."""
    model.eval().to(settings.device)
    placed = [on_device(batch, settings.device) for batch in batches]

    def run() -> list[Tensor]:
        with torch.inference_mode(), precision(settings):
            found = [model(**{k: v for k, v in b.items() if k != "labels"}).logits for b in placed]
        return [logits.float().cpu() for logits in found]

    return run


def training(model: nn.Module, batches: Batches, settings: BenchSettings) -> Program:
    """One step of fused AdamW for every batch; gives the losses."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    return _steps(model, batches, settings, optimizer)


def plain_descent(model: nn.Module, batches: Batches, settings: BenchSettings) -> list[float]:
    """Losses of two rounds of gradient descent: the second shows the gradients of the first.

    Not AdamW: its first step makes a whole one of every gradient, also of one that is zero but for
    rounding.
    """
    run = _steps(model, batches, settings, torch.optim.SGD(model.parameters(), lr=0.1))
    return [*run(), *run()]


def _steps(
    model: nn.Module, batches: Batches, settings: BenchSettings, optimizer: torch.optim.Optimizer
) -> Program:
    model.train().to(settings.device)
    placed = [on_device(batch, settings.device) for batch in batches]

    def run() -> list[float]:
        losses = []
        for batch in placed:
            with precision(settings):
                loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach())
        return [float(loss) for loss in losses]

    return run


def count_flops(program: Program) -> int | None:
    """Operations of one round; None where one of them is not known."""
    with FlopCounter() as counter:
        program()
    return counter.flops


def on_device(batch: Mapping[str, Any], device: str) -> dict[str, Any]:
    """Its tensors moved."""
    return {k: v.to(device) if isinstance(v, Tensor) else v for k, v in batch.items()}


def precision(settings: BenchSettings) -> AbstractContextManager[Any]:
    """Autocast for bf16."""
    if settings.precision == "fp32":
        return nullcontext()
    return torch.autocast(settings.device, dtype=torch.bfloat16)
