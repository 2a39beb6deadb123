"""The training loop.

Three rules make it exact. The rows of a step are a function of seed and step number, and its loss
is divided by the loss terms of the *whole* step (both in `toolkit.training.training_steps`). And a
checkpoint holds all that the next step depends on: weights, optimizer, random states and
``TrainState``.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType
from torch import nn

from toolkit.batching import Collate, padded_lengths, row_lengths
from toolkit.clock import Lap, start_clock
from toolkit.command_line import resume_command
from toolkit.console import notify
from toolkit.dry_run import end_dry_run
from toolkit.errors import Interrupted, UserError
from toolkit.evaluation import Metric, Outputs, predict
from toolkit.objectives import Objective
from toolkit.processes import any_process, decided_by_main
from toolkit.progress import Display, progress_bar
from toolkit.run import Run
from toolkit.training.batch_size import choose_batch_size
from toolkit.training.checkpoint import CheckpointStore
from toolkit.training.ema import WeightAverage
from toolkit.training.forecast import forecast_training
from toolkit.training.freezing import set_training_mode
from toolkit.training.gradient_checkpointing import checkpoint_layers
from toolkit.training.interruption import Interruption
from toolkit.training.lr_finder import end_with_learning_rate
from toolkit.training.optimizers import build_optimizer
from toolkit.training.out_of_memory import explain_out_of_memory
from toolkit.training.resuming import new_state, restore_best, resume
from toolkit.training.saving import save_patiently
from toolkit.training.sharding import prepare
from toolkit.training.train_state import TrainState
from toolkit.training.training_steps import (
    AfterEvaluation,
    Splits,
    Step,
    Training,
    count_steps,
    train_step,
    training_steps,
)


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
            processes. An average is asked for of weights that are divided among processes. A
            checkpoint cannot be written.
        Interrupted: by Ctrl-C or another signal; what was done is saved.
        RecipeEnds: after a few batches of a dry run, or when a learning rate has been looked for.
    """
    training, store = prepare_training(
        run, model, data, objective, collate, collate_validation or collate, metric,
        after_evaluation,
    )  # fmt: skip
    if run.config.dry_run:
        end_dry_run(run, forecast_training(training))
    if run.config.lr_finder:
        end_with_learning_rate(training)
    _train(training, store)
    restore_best(store, training.state)
    if training.average is not None:
        training.average.exchange()
    direction = "highest" if metric.higher_is_better else "lowest"
    return FitResult(
        model=run.accelerator.unwrap_model(training.model),
        state=training.state,
        total_steps=training.total_steps,
        selection=f"{direction} validation {metric.selection}",
        validation=training.best_outputs,
    )


def prepare_training(
    run: Run[Any],
    model: nn.Module,
    data: Splits,
    objective: Objective,
    collate: Collate,
    collate_validation: Collate,
    metric: Metric,
    after_evaluation: AfterEvaluation | None,
) -> tuple[Training, CheckpointStore]:
    """Make the run directory, put the model on its device, and take up a run to be resumed.

    Args and errors are those of `fit`.
    """
    train, accelerator = run.config.train, run.accelerator
    if train.gradient_checkpointing:
        checkpoint_layers(model)
    if train.auto_batch_size and not run.resumed:
        choose_batch_size(run, model, data, objective, collate)
    padded = None if train.batch_tokens is None else padded_lengths(data.train)
    steps_per_epoch, total_steps = count_steps(
        len(data.train), train, accelerator.num_processes, padded
    )
    optimizer = build_optimizer(model, train)
    if not (run.config.dry_run or run.config.lr_finder):
        run.begin(len(data.train))
    model, optimizer = prepare(accelerator, model, optimizer)
    store = CheckpointStore(run.checkpoint_folders, accelerator, train.keep_checkpoints)
    average = _start_average(accelerator, model, train.ema)
    # From here on every process draws its own dropout masks.
    torch.manual_seed(run.config.seed + accelerator.process_index)
    clock = start_clock(accelerator)
    state = resume(run, store, clock) if run.resumed else new_state(accelerator, clock)
    settings = getattr(accelerator.unwrap_model(model), "config", None)
    training = Training(
        run, model, optimizer, data, objective, collate, collate_validation, metric,
        steps_per_epoch, total_steps, row_lengths(data.train), state, padded=padded,
        average=average, after_evaluation=after_evaluation, clock=clock,
        interruption=Interruption(alone=accelerator.num_processes == 1),
        encoder_decoder=bool(getattr(settings, "is_encoder_decoder", False)),
    )  # fmt: skip
    return training, store


def _train(training: Training, store: CheckpointStore) -> None:
    """All steps that are left, with their evaluations and checkpoints."""
    set_training_mode(training.model)
    limit = training.run.config.train.max_seconds
    what, total = "training", training.total_steps
    if limit is not None:
        what, total = "seconds", math.ceil(limit)
    bar = progress_bar(what, total, done=_progress(training))
    with bar as display, training.interruption:
        for step, _ in take_steps(training, display):
            _evaluate_and_save(training, step, store)
            if training.interrupted:
                raise _interrupted(training)
        # After the last step nothing is counted together any more.
        if any_process(training.run.accelerator, training.interruption.requested):
            raise _interrupted(training)


def take_steps(training: Training, display: Display) -> Iterator[tuple[Step, dict[str, Any]]]:
    """Do the steps that are left, and account for each; yields it with what `train_step` reports.

    Their time is that of the step and of the preparation of its batches: what is done between two
    of them, evaluations and checkpoints, does not count.
    """
    training.clock.start()
    for step in training_steps(training):
        with explain_out_of_memory(training, step):
            report = train_step(training, step)
        before = _progress(training)
        _account(training, step, training.clock.stop())
        _report(training, report, display, _progress(training) - before)
        yield step, report
        training.clock.start()


def _interrupted(training: Training) -> Interrupted:
    # Of several processes only one may have had the signal.
    number = training.interruption.signal or signal.SIGINT
    return Interrupted(
        f"interrupted after step {training.state.step}, which is saved. Go on with: "
        f"{resume_command(training.run.directory)}",
        128 + number,
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


def _progress(training: Training) -> int:
    """What the progress display counts: steps, or whole seconds where they are limited."""
    limited = training.run.config.train.max_seconds is not None
    return int(training.state.seconds) if limited else training.state.step


def _place(state: TrainState) -> dict[str, float]:
    """Where a logged line stands; joules where they are known."""
    place = {"step": state.step, "epoch": state.epoch, "seconds": round(state.seconds, 3)}
    return place if state.joules is None else place | {"joules": round(state.joules, 3)}


def _account(training: Training, step: Step, lap: Lap) -> None:
    state, accelerator, seconds = training.state, training.run.accelerator, lap.seconds
    if training.run.config.train.max_seconds is not None:
        seconds = decided_by_main(accelerator, seconds)  # all stop at the same step
    state.step += 1
    state.epoch = step.epoch
    state.seconds += seconds
    state.examples += len(step.rows)
    if state.joules is not None:
        state.joules = None if lap.joules is None else state.joules + lap.joules
    if training.lengths is not None:
        state.tokens += int(training.lengths[step.rows].sum())


def _report(
    training: Training, report: dict[str, Any], display: Display, progress_made: int
) -> None:
    state, run = training.state, training.run
    unit, count = ("tokens", state.tokens) if state.tokens else ("examples", state.examples)
    skipped = "skipped" in report
    loss = "no loss" if skipped else f"loss {report['loss']:.4f}"
    display.advance(progress_made, f"{loss}  {count / state.seconds:,.0f} {unit}/s")
    if skipped:
        notify(f"warning: step {state.step} was left out: {report['skipped']}")
    due = state.step % run.config.train.log_every == 0 or state.step == 1 or training.at_end
    if due or skipped:
        counts = {"tokens": state.tokens, "examples": state.examples}
        run.log(_place(state) | report | counts)


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
    if training.run.accelerator.num_processes == 1:  # no need to ask others in the next step
        training.interrupted = training.interruption.requested
    if save or training.interrupted:
        saved = replace(state, scheduled=save, unwritten=training.run.unwritten)
        save_patiently(
            store, state.step, asdict(saved), state.best_step, wait=train.wait_for_space,
            interruption=training.interruption,
        )  # fmt: skip


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
    # One decision for all, whatever rounding does.
    metrics = decided_by_main(run.accelerator, metric(outputs))
    run.log(_place(state) | {"validation": metrics})
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
