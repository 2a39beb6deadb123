"""One batch through the model, without a step: what a dry run tries."""

from __future__ import annotations

from typing import Any

import torch
from accelerate.utils import send_to_device

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
        "first batch": ", ".join(f"{name} {list(value.shape)}" for name, value in batch.items()),
        "its loss before training": f"{float((sums / counts).sum()):.4f}",
    }
