"""The steps of training: which rows they see, and what one of them does to the weights.

The rows of a step are a function of seed and step number (`toolkit.batching`). Its loss is divided
by the number of loss terms of the *whole* step, over all forward passes and processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from accelerate.utils import send_to_device
from torch import Tensor, nn
from torch.optim import Optimizer

from toolkit.batching import (
    Collate,
    Rows,
    load_batches,
    padded_tokens,
    plan_epoch,
    plan_epoch_by_tokens,
    split_window,
)
from toolkit.clock import Clock
from toolkit.config import TrainConfig
from toolkit.errors import UserError
from toolkit.evaluation import Metric, Outputs
from toolkit.objectives import Batch, Objective
from toolkit.run import Run
from toolkit.training.counted_step import compute_counted, is_counted
from toolkit.training.ema import WeightAverage
from toolkit.training.interruption import Interruption
from toolkit.training.optimizers import set_learning_rate
from toolkit.training.schedules import schedule_factor
from toolkit.training.train_state import TrainState

AfterEvaluation = Callable[[nn.Module, int], None]
"""Called on every process with the model, out of its wrappers, and the number of the step."""


class Splits(Protocol):
    """Tokenised data: rows to train on and rows to choose the best checkpoint by."""

    @property
    def train(self) -> Any:
        """Rows with the columns the collator needs."""

    @property
    def validation(self) -> Any:
        """Likewise."""


@dataclass(frozen=True)
class Step:
    """One optimizer step as one process sees it."""

    epoch: int
    last_of_epoch: bool
    rows: np.ndarray  # of all processes
    batches: list[Batch]  # of this process, one per forward pass
    counted: list[bool]  # False for a stand-in that only keeps the processes in step


@dataclass
class Training:
    """Everything the loop works with."""

    run: Run[Any]
    model: nn.Module
    optimizer: Optimizer
    data: Splits
    objective: Objective
    collate: Collate
    collate_validation: Collate
    metric: Metric
    steps_per_epoch: int
    total_steps: int
    lengths: np.ndarray | None  # tokens per training row
    state: TrainState
    best_outputs: Outputs | None = None
    padded: np.ndarray | None = None  # tokens per row and sequence, for batches by tokens
    after_evaluation: AfterEvaluation | None = None
    average: WeightAverage | None = None
    clock: Clock = field(default_factory=Clock)
    interruption: Interruption = field(default_factory=Interruption)
    interrupted: bool = False  # all processes know, and end after this step
    encoder_decoder: bool = False  # its batches have two sides

    @property
    def time_used(self) -> float:
        """Share of `max_seconds` that is used up; 0 without a limit."""
        limit = self.run.config.train.max_seconds
        return 0.0 if limit is None else self.state.seconds / limit

    @property
    def at_end(self) -> bool:
        """The last step is done, or the time is up."""
        return self.state.step >= self.total_steps or self.time_used >= 1

    def evaluated_weights(self) -> AbstractContextManager[None]:
        """Inside the block the model has the weights that count: their average, if one is kept."""
        return nullcontext() if self.average is None else self.average.in_place()


class NotFiniteError(UserError):
    """A loss or gradient that is NaN or infinite; names step, rows and learning rate."""


MOST_SKIPPED = 10
"""Steps on end that may be left out for it: then the weights themselves are lost."""


def count_steps(
    rows: int, train: TrainConfig, processes: int, padded: np.ndarray | None = None
) -> tuple[int, int]:
    """Optimizer steps per epoch and in total; an incomplete last window is a step.

    Args:
        padded: `padded_lengths` of the rows, for batches by tokens.
    """
    if train.batch_tokens is not None and padded is not None:
        per_epoch = len(plan_epoch_by_tokens(padded, train.batch_tokens, 0, 0))
    else:
        per_epoch = math.ceil(rows / (train.batch_size * train.accumulation_steps * processes))
    return per_epoch, train.max_steps or per_epoch * train.epochs


def plan_passes(
    rows: int,
    train: TrainConfig,
    processes: int,
    seed: int,
    epoch: int,
    lengths: np.ndarray | None,
    padded: np.ndarray | None,
) -> list[tuple[np.ndarray, list[list[np.ndarray]]]]:
    """Row numbers of every optimizer step of an epoch, and how its passes share them.

    Args:
        rows: number of training examples.
        lengths: tokens of each; rows are grouped by them where the settings say so.
        padded: `padded_lengths` of the rows, for batches by tokens.

    Returns:
        For every step all its rows, and ``parts[process][forward_pass]``.
    """
    lengths = lengths if train.group_by_length else None
    passes = train.accumulation_steps * processes
    if train.batch_tokens is not None and padded is not None:
        windows = plan_epoch_by_tokens(padded, train.batch_tokens, seed, epoch)
        micro_batches = [math.ceil(len(window) / passes) for window in windows]
    else:
        windows = plan_epoch(rows, train.batch_size * passes, seed, epoch, lengths)
        micro_batches = [train.batch_size] * len(windows)
    return [
        (window, split_window(window, processes, micro_batch, lengths))
        for window, micro_batch in zip(windows, micro_batches, strict=True)
    ]


def training_steps(training: Training) -> Iterator[Step]:
    """Yield the steps that are left, until the last one or an early stop."""
    state = training.state
    while not training.at_end and not state.stopped_early:
        epoch, done = divmod(state.step, training.steps_per_epoch)
        for step in _epoch_steps(training, epoch, done):
            yield step
            if training.at_end or state.stopped_early:
                return


def _epoch_steps(training: Training, epoch: int, done: int) -> Iterator[Step]:
    """Steps of one epoch after the first ``done`` ones."""
    run, rows = training.run, training.data.train
    train, accelerator = run.config.train, run.accelerator
    plan = plan_passes(
        len(rows), train, accelerator.num_processes, run.config.seed, epoch, training.lengths,
        training.padded,
    )[done:]  # fmt: skip
    windows = [window for window, _ in plan]
    mine = [shares[accelerator.process_index] for _, shares in plan]
    # A process without rows computes one of them for nothing, so that collectives match.
    loads = [
        chunk if len(chunk) else window[:1]
        for window, chunks in zip(windows, mine, strict=True)
        for chunk in chunks
    ]
    pin = accelerator.device.type == "cuda"
    batches = iter(load_batches(Rows(rows, epoch), loads, training.collate, train.workers, pin))
    for number, (window, chunks) in enumerate(zip(windows, mine, strict=True)):
        yield Step(
            epoch=epoch,
            last_of_epoch=number == len(windows) - 1,
            rows=window,
            batches=[next(batches) for _ in chunks],
            counted=[len(chunk) > 0 for chunk in chunks],
        )


def train_step(
    training: Training, step: Step, learning_rate: float | None = None
) -> dict[str, Any]:
    """One optimizer step.

    Args:
        learning_rate: instead of the schedule's.

    Returns:
        ``loss`` (mean over the loss terms of all processes), ``learning_rate`` and ``grad_norm``
        before clipping (missing where a loss scaler skips the step for an infinite gradient).
        ``skipped`` instead of loss and norm, and why, where the step was left out.

    Raises:
        NotFiniteError: the loss or the gradient is NaN or infinite; the weights are as before. With
            `not_finite="skip"`, only where that is so for `MOST_SKIPPED` steps on end.
    """
    state, train = training.state, training.run.config.train
    if learning_rate is None:
        learning_rate = _scheduled_rate(training)
    set_learning_rate(training.optimizer, learning_rate)
    skips = train.not_finite == "skip"
    # A batch norm has measured the bad batch by the time its loss is known.
    buffers = [(b, b.clone()) for b in training.model.buffers()] if skips else []
    try:
        report = _compute_and_update(training, step, learning_rate)
    except NotFiniteError as error:
        training.optimizer.zero_grad()
        state.skipped += 1
        state.skipped_on_end += 1
        if not skips or state.skipped_on_end >= MOST_SKIPPED:
            raise
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
        return {"learning_rate": learning_rate, "skipped": str(error)}
    state.skipped_on_end = 0
    return report


def _compute_and_update(training: Training, step: Step, learning_rate: float) -> dict[str, Any]:
    accelerator, model, state = training.run.accelerator, training.model, training.state
    train = training.run.config.train
    totals, padded, interruptions = _global_counts(training, step)
    images = "input_ids" not in step.batches[0]
    if is_counted(state, images):
        loss_sum = compute_counted(
            accelerator, model, state, len(step.rows) if images else padded,
            lambda: _accumulate(training, step, totals),
        )  # fmt: skip
    else:
        loss_sum = _accumulate(training, step, totals)
    mean_loss = accelerator.reduce(loss_sum, reduction="sum").item()
    training.interrupted = bool(interruptions)
    if state.padded_tokens is not None:
        state.padded_tokens += int(padded)
    if not math.isfinite(mean_loss):
        raise NotFiniteError(_not_finite("loss", mean_loss, step, training, learning_rate))
    report: dict[str, Any] = {"loss": mean_loss, "learning_rate": learning_rate}
    max_norm = math.inf if train.max_grad_norm is None else train.max_grad_norm
    norm = float(accelerator.clip_grad_norm_(model.parameters(), max_norm))
    if math.isfinite(norm):
        report["grad_norm"] = norm
    elif accelerator.scaler is None:  # a loss scaler skips such a step and lowers its scale
        raise NotFiniteError(_not_finite("gradient norm", norm, step, training, learning_rate))
    training.optimizer.step()
    training.optimizer.zero_grad()
    if not accelerator.optimizer_step_was_skipped:
        state.updates += 1
        if training.average is not None:
            training.average.update()
    return report


def _accumulate(training: Training, step: Step, totals: Tensor) -> Tensor:
    """All forward and backward passes of a step; its loss, as far as this process computes it."""
    accelerator, model = training.run.accelerator, training.model
    loss_sum = torch.zeros((), device=accelerator.device)
    for number, (batch, counted) in enumerate(zip(step.batches, step.counted, strict=True)):
        last = number == len(step.batches) - 1
        # accelerate reads this flag in backward (DeepSpeed), clipping and optimizer.step.
        accelerator.gradient_state._set_sync_gradients(last)
        with nullcontext() if last else accelerator.no_sync(model):
            sums = training.objective.loss(model, send_to_device(batch, accelerator.device))
            loss = (sums / totals).sum() * float(counted)
            loss_sum += loss.detach()
            # DistributedDataParallel averages over processes: multiply to get the sum back.
            accelerator.backward(loss * accelerator.num_processes)
    return loss_sum


def _scheduled_rate(training: Training) -> float:
    """Where time runs out before the steps do, the schedule follows the time."""
    train = training.run.config.train
    updates = max(training.state.updates, training.time_used * training.total_steps)
    return train.learning_rate * schedule_factor(updates, training.total_steps, train)


def _global_counts(training: Training, step: Step) -> tuple[Tensor, Tensor, Tensor]:
    """Of the whole step over all processes: terms per part of the loss [parts], padded tokens [],
    and whether somebody was interrupted, as a number that is 0 where nobody was [].

    A stand-in has no terms, but its tokens are computed. The values stay on the device: to look at
    them would wait for it.
    """
    accelerator, objective = training.run.accelerator, training.objective
    counts = []
    for batch, counted in zip(step.batches, step.counted, strict=True):
        terms = objective.count(batch)
        padded = padded_tokens(batch, training.encoder_decoder)
        asked = training.interruption.requested
        counts.append([*(terms if counted else [0] * len(terms)), padded, asked])
    total = torch.tensor(counts, device=accelerator.device).sum(0)
    total = accelerator.reduce(total, reduction="sum")
    # A part without terms (no token was masked) has a sum of 0; 0 / 1 keeps it so.
    return total[:-2].clamp(min=1).float(), total[-2], total[-1]


def _not_finite(
    what: str, value: float, step: Step, training: Training, learning_rate: float
) -> str:
    state, train = training.state, training.run.config.train
    on_end = state.skipped_on_end + 1
    left_out = f", for the {on_end}th step on end" if train.not_finite == "skip" else ""
    return (
        f"the {what} became {value} in step {state.step + 1}{left_out} (learning rate "
        f"{learning_rate:.3g}, training rows {_name_rows(step.rows, training.data.train)}). The "
        "weights were not updated with it, and no checkpoint is touched. Try a lower "
        "--train.learning_rate, look at these rows, or leave such steps out with "
        "--train.not_finite skip."
    )


def _name_rows(rows: np.ndarray, data: Any) -> str:
    """Numbers of the first 20, with their ids where they have any that say more."""
    first = [int(i) for i in rows[:20]]
    names = [str(i) for i in first]
    if "id" in data.column_names:
        ids = [str(name) for name in data[first]["id"]]
        names = [n if n == i else f"{n} (id {i})" for n, i in zip(names, ids, strict=True)]
    more = f" and {len(rows) - 20} more" if len(rows) > 20 else ""
    return ", ".join(names) + more
