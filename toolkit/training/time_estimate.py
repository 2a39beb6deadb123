"""How long training will take, from a few of its passes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from torch import nn

from toolkit.batching import (
    Collate,
    Rows,
    evaluation_batches,
    load_batches,
    padded_lengths_if_any,
    padded_sizes,
    row_lengths,
)
from toolkit.evaluation import Compute
from toolkit.training.first_batch import compute_pass
from toolkit.training.training_steps import Training

PLACES = (1 / 6, 1 / 2, 5 / 6)
"""Which passes are timed, of all in the order of their size: the middle ones of three thirds."""


def estimate_time(training: Training, passes: Sequence[np.ndarray]) -> dict[str, Any]:
    """Seconds of training and its evaluations; the optimizer really steps.

    Args:
        passes: rows of every forward pass of the first epoch on this process.
    """
    train, steps = training.run.config.train, training.total_steps
    sizes = padded_sizes(passes, padded_lengths_if_any(training.data.train))
    rate = _seconds_per_position(
        training.run.accelerator, training.data.train, passes, sizes, training.collate,
        lambda batch: compute_pass(training, batch),
    )  # fmt: skip
    per_step = rate * float(sizes.sum()) / training.steps_per_epoch + _update_seconds(training)
    seconds, by_clock = per_step * steps, train.max_seconds
    if by_clock is not None:
        seconds = min(seconds, by_clock)
        steps = min(steps, math.ceil(by_clock / per_step))
    every = train.evaluate_every or training.steps_per_epoch
    evaluations = math.ceil(steps / every)
    once = estimate_evaluation(
        training.run.accelerator, training.model, training.data.validation,
        training.objective.outputs, training.collate_validation, train.eval_batch_size,
    )  # fmt: skip
    return {
        "step_seconds": per_step,
        "training_seconds": seconds,
        "evaluations": evaluations,
        "evaluation_seconds": once,
        "total_seconds": seconds + evaluations * once,
        "estimated_from": f"{len(PLACES)} forward and backward passes, an optimizer step and "
        "batches of validation; without start-up, checkpoints and the final test",
    }


def estimate_evaluation(
    accelerator: Accelerator,
    model: nn.Module,
    rows: Any,
    compute: Compute,
    collate: Collate,
    batch_size: int,
) -> float:
    """Seconds of a pass of `toolkit.evaluation.predict` over the rows."""
    batches = evaluation_batches(
        len(rows), batch_size, accelerator.process_index, accelerator.num_processes,
        row_lengths(rows),
    )  # fmt: skip
    sizes = padded_sizes(batches, padded_lengths_if_any(rows))
    was_training = model.training
    model.eval()
    with torch.no_grad():
        rate = _seconds_per_position(
            accelerator, rows, batches, sizes, collate, lambda batch: compute(model, batch)
        )
    model.train(was_training)
    return rate * float(sizes.sum())


def _seconds_per_position(
    accelerator: Accelerator,
    rows: Any,
    batches: Sequence[np.ndarray],
    sizes: np.ndarray,
    collate: Collate,
    compute: Callable[[Any], Any],
) -> float:
    """With the preparation of the batches; the first one is computed once more to get warm."""
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]  # a stand-in has no rows
    if not len(order):
        return 0.0
    chosen = [int(order[int(place * len(order))]) for place in PLACES]
    seconds = 0.0
    for number, place in enumerate([chosen[0], *chosen]):
        started = time.perf_counter()
        [batch] = load_batches(Rows(rows), [batches[place]], collate)
        compute(send_to_device(batch, accelerator.device))
        _wait(accelerator.device)
        if number:
            seconds += time.perf_counter() - started
    return seconds / float(sizes[chosen].sum())


def _update_seconds(training: Training) -> float:
    """Of the second update: the first one makes the optimizer's states."""
    accelerator, norm = training.run.accelerator, training.run.config.train.max_grad_norm
    started = 0.0
    for _ in range(2):
        started = time.perf_counter()
        accelerator.clip_grad_norm_(training.model.parameters(), math.inf if norm is None else norm)
        training.optimizer.step()
        _wait(accelerator.device)
    return time.perf_counter() - started


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
