"""The training loop.

Three rules make it exact. The rows of a step are a function of seed and step number
(``toolkit.batching``). The loss of a step is divided by the number of loss terms of the *whole*
step, over all forward passes and processes. And a checkpoint holds all that the next step depends
on: weights, optimizer, random states and ``TrainState``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType, broadcast_object_list, send_to_device
from torch import Tensor, nn
from torch.optim import Optimizer

from toolkit.batching import (
    Collate,
    Rows,
    load_batches,
    padded_lengths,
    plan_epoch,
    plan_epoch_by_tokens,
    row_lengths,
    split_window,
)
from toolkit.checkpoint import CheckpointStore
from toolkit.config import TrainConfig
from toolkit.console import notify
from toolkit.dry_run import end_dry_run
from toolkit.ema import WeightAverage
from toolkit.errors import UserError
from toolkit.evaluation import Metric, Outputs, predict
from toolkit.objectives import Batch, Objective
from toolkit.progress import Display, progress_bar
from toolkit.run import Run
from toolkit.schedules import schedule_factor

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


@dataclass
class TrainState:
    """Where training stands: everything a checkpoint needs besides weights and random states."""

    step: int = 0
    updates: int = 0  # steps that changed the weights; fp16 skips those that overflow
    epoch: int = 0
    best_step: int | None = None
    best_metrics: dict[str, float] = field(default_factory=dict)
    waited: int = 0  # evaluations since the best one
    stopped_early: bool = False
    seconds: float = 0.0  # in training steps, without evaluation and checkpoints
    examples: int = 0
    tokens: int = 0
    processes: int = 1


@dataclass(frozen=True)
class FitResult:
    """What training gives back; ``model`` holds the best weights.

    ``validation`` are its per-example results on the validation rows, where this process has seen
    them (a resumed run may not have).
    """

    model: nn.Module
    state: TrainState
    total_steps: int
    selection: str
    validation: Outputs | None


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


def fit(
    run: Run[Any],
    model: nn.Module,
    data: Splits,
    *,
    objective: Objective,
    collate: Collate,
    metric: Metric,
    collate_validation: Collate | None = None,
    after_evaluation: AfterEvaluation | None = None,
) -> FitResult:
    """Train a model and return it with the weights of the best evaluation.

    Continues from the newest complete checkpoint of the run when it was started with ``--resume``.

    Args:
        data: ``train`` and ``validation``. Where rows have a ``length`` (tokens), it groups them
            into batches and counts the tokens.
        objective: loss sums and their counts.
        metric: decides which evaluation was the best.
        collate_validation: for validation rows that need another collator than ``collate``.
        after_evaluation: what else to do with the model at every evaluation, such as to let it
            write a text; it leaves weights and random states as they are.

    Raises:
        UserError: the loss or the gradient became NaN or infinite; names step, rows and learning
            rate. No parameter is left to train. The run was started with another number of
            processes. An average is asked for of weights that are divided among processes.
        DryRunEnds: after one batch of a dry run.
    """
    train, accelerator = run.config.train, run.accelerator
    padded = None if train.batch_tokens is None else padded_lengths(data.train)
    steps_per_epoch, total_steps = count_steps(
        len(data.train), train, accelerator.num_processes, padded
    )
    optimizer = build_optimizer(model, train)
    if not run.config.dry_run:
        run.begin()
    model, optimizer = accelerator.prepare(model, optimizer)
    store = CheckpointStore(run.directory / "checkpoints", accelerator, train.keep_checkpoints)
    average = _start_average(accelerator, model, train.ema)
    # From here on every process draws its own dropout masks.
    torch.manual_seed(run.config.seed + accelerator.process_index)
    state = _resume(run, store) if run.resumed else TrainState(processes=accelerator.num_processes)
    training = Training(
        run, model, optimizer, data, objective, collate, collate_validation or collate, metric,
        steps_per_epoch, total_steps, row_lengths(data.train), state, padded=padded,
        average=average, after_evaluation=after_evaluation,
    )  # fmt: skip
    if run.config.dry_run:
        end_dry_run(_try_one_batch(training))
    model.train()
    limit = train.max_seconds
    what, total = ("training", total_steps) if limit is None else ("seconds", math.ceil(limit))
    with progress_bar(what, total, done=_progress(training)) as display:
        started = time.perf_counter()
        for step in training_steps(training):
            report = train_step(training, step)
            # With the preparation of the batches, without evaluations and checkpoints.
            before = _progress(training)
            _account(training, step, time.perf_counter() - started)
            _report(training, report, display, _progress(training) - before)
            _evaluate_and_save(training, step, store)
            started = time.perf_counter()
    _restore_best(store, state)
    if average is not None:
        average.exchange()
    direction = "highest" if metric.higher_is_better else "lowest"
    selection = f"{direction} validation {metric.selection}"
    best_model = accelerator.unwrap_model(model)
    return FitResult(best_model, state, total_steps, selection, training.best_outputs)


def _try_one_batch(training: Training) -> dict[str, Any]:
    """What would be trained, and the loss of the first batch, without a step."""
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
    lengths = training.lengths if train.group_by_length else None
    passes = train.accumulation_steps * accelerator.num_processes  # of all processes
    if train.batch_tokens is not None and training.padded is not None:
        plan = plan_epoch_by_tokens(training.padded, train.batch_tokens, run.config.seed, epoch)
        micro_batches = [math.ceil(len(window) / passes) for window in plan]
    else:
        plan = plan_epoch(len(rows), train.batch_size * passes, run.config.seed, epoch, lengths)
        micro_batches = [train.batch_size] * len(plan)
    windows = plan[done:]
    parts = [
        split_window(window, accelerator.num_processes, micro_batch, lengths)
        for window, micro_batch in zip(windows, micro_batches[done:], strict=True)
    ]
    mine = [shares[accelerator.process_index] for shares in parts]
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


def train_step(training: Training, step: Step) -> dict[str, float]:
    """One optimizer step.

    Returns:
        ``loss`` (mean over the loss terms of all processes), ``learning_rate`` and ``grad_norm``
        before clipping (missing where a loss scaler skips the step for an infinite gradient).
    """
    accelerator, model, state = training.run.accelerator, training.model, training.state
    train = training.run.config.train
    # Where time runs out before the steps do, the schedule follows the time.
    updates = max(state.updates, training.time_used * training.total_steps)
    learning_rate = train.learning_rate * schedule_factor(updates, training.total_steps, train)
    for group in training.optimizer.param_groups:
        group["lr"] = learning_rate
    totals = _global_counts(accelerator, training.objective, step)
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
    mean_loss = accelerator.reduce(loss_sum, reduction="sum").item()
    if not math.isfinite(mean_loss):
        raise UserError(_not_finite("loss", mean_loss, step, state, learning_rate))
    report = {"loss": mean_loss, "learning_rate": learning_rate}
    max_norm = math.inf if train.max_grad_norm is None else train.max_grad_norm
    norm = float(accelerator.clip_grad_norm_(model.parameters(), max_norm))
    if math.isfinite(norm):
        report["grad_norm"] = norm
    elif accelerator.scaler is None:  # a loss scaler skips such a step and lowers its scale
        raise UserError(_not_finite("gradient norm", norm, step, state, learning_rate))
    training.optimizer.step()
    training.optimizer.zero_grad()
    if not accelerator.optimizer_step_was_skipped:
        state.updates += 1
        if training.average is not None:
            training.average.update()
    return report


def build_optimizer(model: nn.Module, train: TrainConfig) -> Optimizer:
    """The optimizer of the parameters that are trained; biases and norms are not decayed.

    Norms and biases are the vectors among the parameters (Devlin et al. 2019, appendix A.2, and
    HuggingFace's Trainer exempt the same ones).

    Raises:
        UserError: no parameter is left to train.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    if not trained:
        raise UserError("every parameter of the model is frozen: nothing is left to train.")
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": train.weight_decay},
        {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if train.optimizer == "sgd":
        return torch.optim.SGD(
            groups, lr=train.learning_rate, momentum=0.9, nesterov=True, fused=True
        )
    return torch.optim.AdamW(
        groups,
        lr=train.learning_rate,
        betas=(0.9, train.adam_beta2),
        fused=True,
    )


def _start_average(
    accelerator: Accelerator, model: nn.Module, decay: float | None
) -> WeightAverage | None:
    """The average of the prepared model's weights; checkpoints hold it from now on.

    Raises:
        UserError: the weights are divided among processes.
    """
    if decay is None:
        return None
    if accelerator.distributed_type in (DistributedType.FSDP, DistributedType.DEEPSPEED):
        raise UserError(
            f"--train.ema {decay}: with {accelerator.distributed_type.value} no process has all "
            "weights to average. Leave it out, or launch with DDP."
        )
    average = WeightAverage(accelerator.unwrap_model(model), decay)
    accelerator.register_for_checkpointing(average)
    return average


def _global_counts(accelerator: Accelerator, objective: Objective, step: Step) -> Tensor:
    """Loss terms of the whole step over all processes, per part of the loss [parts]."""
    counts = [
        objective.count(batch) if counted else [0] * len(objective.count(batch))
        for batch, counted in zip(step.batches, step.counted, strict=True)
    ]
    total = torch.tensor(counts, device=accelerator.device).sum(0)
    # A part without terms (no token was masked) has a sum of 0; 0 / 1 keeps it so.
    return accelerator.reduce(total, reduction="sum").clamp(min=1).float()


def _resume(run: Run[Any], store: CheckpointStore) -> TrainState:
    newest, processes = store.newest(), run.accelerator.num_processes
    # Before anything is loaded: a process that was not there then finds no random state of its own.
    state = TrainState(processes=processes) if newest is None else TrainState(**store.state(newest))
    if state.processes != processes:
        raise UserError(
            f"--resume {run.directory}: it was started with {state.processes} processes, now there "
            f"are {processes}. Resume with {state.processes}."
        )
    if newest is not None:
        store.restore(newest)
    if state.best_step not in (None, state.step):
        _forget_damaged_best(store, state)
    run.forget_after(state.step)
    notify(f"resuming {run.directory} after step {state.step}")
    return state


def _restore_best(store: CheckpointStore, state: TrainState) -> None:
    """Load the best weights at the end of training, unless they are the last ones."""
    if state.best_step is None or state.best_step == state.step:
        return
    problem = store.problem(state.best_step)
    if problem is None:
        store.restore(state.best_step)
    else:
        notify(
            f"warning: the best checkpoint, step-{state.best_step}, is lost ({problem}); the model "
            f"is that of the last step, {state.step}"
        )
        state.best_step = state.step


def _forget_damaged_best(store: CheckpointStore, state: TrainState) -> None:
    """Go on without a best checkpoint that cannot be loaded at the end: the next one counts."""
    assert state.best_step is not None
    problem = store.problem(state.best_step)
    if problem is not None:
        notify(
            f"warning: the best checkpoint so far, step-{state.best_step}, is lost ({problem}); "
            f"the best is chosen anew from step {state.step + 1} on"
        )
        state.best_step, state.best_metrics, state.waited = None, {}, 0


def _progress(training: Training) -> int:
    """What the progress display counts: steps, or whole seconds where they are limited."""
    limited = training.run.config.train.max_seconds is not None
    return int(training.state.seconds) if limited else training.state.step


def _account(training: Training, step: Step, seconds: float) -> None:
    state, accelerator = training.state, training.run.accelerator
    if training.run.config.train.max_seconds is not None and accelerator.num_processes > 1:
        (seconds,) = broadcast_object_list([seconds])  # all stop at the same step
    state.step += 1
    state.epoch = step.epoch
    state.seconds += seconds
    state.examples += len(step.rows)
    if training.lengths is not None:
        state.tokens += int(training.lengths[step.rows].sum())


def _report(
    training: Training, report: dict[str, float], display: Display, progress_made: int
) -> None:
    state, run = training.state, training.run
    unit, count = ("tokens", state.tokens) if state.tokens else ("examples", state.examples)
    display.advance(
        progress_made, f"loss {report['loss']:.4f}  {count / state.seconds:,.0f} {unit}/s"
    )
    if state.step % run.config.train.log_every == 0 or state.step == 1 or training.at_end:
        progress = {"step": state.step, "epoch": state.epoch, "seconds": round(state.seconds, 3)}
        run.log(progress | report | {"tokens": state.tokens, "examples": state.examples})


def _evaluate_and_save(training: Training, step: Step, store: CheckpointStore) -> None:
    state, train = training.state, training.run.config.train
    at_end = training.at_end
    if train.evaluate_every is None:
        evaluate = step.last_of_epoch or at_end
    else:
        evaluate = state.step % train.evaluate_every == 0 or at_end
    improved = evaluate and _evaluate(training)
    if train.save_every is None:
        save = evaluate
    else:
        save = improved or at_end or state.step % train.save_every == 0
    if save:
        store.save(state.step, asdict(state), state.best_step)


def _evaluate(training: Training) -> bool:
    """Evaluate, log, and update best and patience; True when this is the best so far."""
    run, state, metric = training.run, training.state, training.metric
    with training.evaluated_weights():
        outputs = predict(
            training.model,
            training.data.validation,
            compute=training.objective.outputs,
            collate=training.collate_validation,
            accelerator=run.accelerator,
            batch_size=run.config.train.eval_batch_size,
        )
    values = [metric(outputs)]
    if run.accelerator.num_processes > 1:
        values = broadcast_object_list(values)  # one decision for all, whatever rounding does
    metrics = values[0]
    progress = {"step": state.step, "epoch": state.epoch, "seconds": round(state.seconds, 3)}
    run.log(progress | {"validation": metrics})
    sign = 1 if metric.higher_is_better else -1
    best = state.best_metrics.get(metric.selection)
    improved = best is None or sign * metrics[metric.selection] > sign * best
    if improved:
        state.best_step, state.best_metrics, state.waited = state.step, metrics, 0
        training.best_outputs = outputs
    else:
        state.waited += 1
        patience = run.config.train.patience
        state.stopped_early = patience is not None and state.waited >= patience
    shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
    best_so_far = "  (best so far)" if improved else ""
    notify(f"step {state.step}, epoch {state.epoch + 1}, validation: {shown}{best_so_far}")
    if training.after_evaluation is not None:
        with training.evaluated_weights():
            training.after_evaluation(run.accelerator.unwrap_model(training.model), state.step)
    return improved


def _not_finite(
    what: str, value: float, step: Step, state: TrainState, learning_rate: float
) -> str:
    rows = ", ".join(str(i) for i in step.rows[:20])
    more = f" and {len(step.rows) - 20} more" if len(step.rows) > 20 else ""
    return (
        f"the {what} became {value} in step {state.step + 1} (learning rate {learning_rate:.3g}, "
        f"training rows {rows}{more}). The weights were not updated with it; the last checkpoint "
        "is intact. Try a lower --train.learning_rate, or look at these rows."
    )
