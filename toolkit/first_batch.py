"""One batch through the model, without a step: what a dry run tries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from accelerate.utils import send_to_device
from torch import Tensor, nn

from toolkit.batching import Collate, Rows, load_batches
from toolkit.evaluation import Compute
from toolkit.run import Run
from toolkit.training_steps import Training, training_steps


def try_one_batch(training: Training) -> dict[str, Any]:
    """What would be trained, and the loss of the first batch, by the names they are shown under."""
    accelerator, model = training.run.accelerator, training.model
    batch = send_to_device(next(training_steps(training)).batches[0], accelerator.device)
    with torch.no_grad():
        sums = training.objective.loss(model.eval(), batch)
    counts = torch.tensor(training.objective.count(batch), device=sums.device).clamp(min=1)
    trained = [p for p in model.parameters() if p.requires_grad]
    return {
        "training rows": len(training.data.train),
        "validation rows": len(training.data.validation),
        "optimizer steps per epoch": training.steps_per_epoch,
        "optimizer steps": training.total_steps,
        "parameters to train": sum(p.numel() for p in trained),
        "first batch": _shapes(batch),
        "its loss before training": f"{float((sums / counts).sum()):.4f}",
    }


def try_evaluation(
    run: Run[Any], model: nn.Module, rows: Any, compute: Compute, collate: Collate
) -> dict[str, Any]:
    """The same where nothing is trained by steps: what is computed of the first rows.

    Args:
        rows: of the split that is computed first.
    """
    few = np.arange(min(len(rows), run.config.train.eval_batch_size))
    [batch] = load_batches(Rows(rows), [few], collate)
    device = run.accelerator.device
    with torch.no_grad():
        outputs = compute(model.to(device).eval(), send_to_device(batch, device))
    return {"rows": len(rows), "first batch": _shapes(batch), "its results": _shapes(outputs)}


def _shapes(tensors: Mapping[str, Tensor]) -> str:
    return ", ".join(f"{name} {list(value.shape)}" for name, value in tensors.items())
