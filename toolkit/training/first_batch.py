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
from toolkit.objectives import Batch
from toolkit.run import Run
from toolkit.training.training_steps import Training


def loss_before_training(training: Training, batch: Batch) -> float:
    """Of a batch on its device: every part's mean over its terms, added up."""
    with torch.no_grad():
        sums = training.objective.loss(training.model.eval(), batch)
    return float((sums / _terms(training, batch, sums.device)).sum())


def compute_pass(training: Training, batch: Batch) -> None:
    """Forward and backward pass of a batch on its device, as training computes them."""
    accelerator = training.run.accelerator
    accelerator.gradient_state._set_sync_gradients(True)
    sums = training.objective.loss(training.model, batch)
    accelerator.backward((sums / _terms(training, batch, sums.device)).sum())


def try_evaluation(
    run: Run[Any], model: nn.Module, rows: Any, compute: Compute, collate: Collate
) -> dict[str, Any]:
    """Where nothing is trained by steps: what is computed of the first rows.

    Args:
        rows: of the split that is computed first.
    """
    few = np.arange(min(len(rows), run.config.train.eval_batch_size))
    [batch] = load_batches(Rows(rows), [few], collate)
    device = run.accelerator.device
    with torch.no_grad():
        outputs = compute(model.to(device).eval(), send_to_device(batch, device))
    return {"tensors": shapes(batch), "results": shapes(outputs)}


def shapes(tensors: Mapping[str, Tensor]) -> str:
    """``input_ids [8, 32], labels [8]``."""
    return ", ".join(f"{name} {list(value.shape)}" for name, value in tensors.items())


def _terms(training: Training, batch: Batch, device: torch.device) -> Tensor:
    return torch.tensor(training.objective.count(batch), device=device).clamp(min=1)
