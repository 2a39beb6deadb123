"""The mean of the last checkpoints' weights (Vaswani et al. 2017, §6.1: the last 5 of a run).

Weights late in training circle around a better point; their mean is nearer to it. Whether it is, is
decided on validation: the mean is taken where its selection metric is better than that of the best
single checkpoint, and both are recorded.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import DistributedType
from safetensors.torch import load_file, load_model, save_file
from torch import nn

from toolkit.batching import Collate
from toolkit.console import notify
from toolkit.errors import UserError
from toolkit.evaluation import Metric, predict
from toolkit.objectives import Objective
from toolkit.run import Run
from toolkit.training.checkpoint import CheckpointStore
from toolkit.training.engine import FitResult

WEIGHTS = "model.safetensors"


def keep_for_average(run: Run[Any], count: int) -> None:
    """Let training keep the checkpoints that are to be averaged; before `fit`.

    Args:
        count: 0 averages nothing.

    Raises:
        UserError: a count that is no number of checkpoints to average, or a moving average that
            is kept already: what is saved beside it would be averaged, and compared with it; or
            weights that are divided among processes.
    """
    if count < 0 or count == 1:
        raise UserError(f"--average {count}: expected 0 (no average) or at least 2 checkpoints")
    train = run.config.train
    if count and train.ema is not None:
        raise UserError(f"--average {count} and --train.ema {train.ema}: choose one average.")
    kind = run.accelerator.distributed_type
    if count and kind in (DistributedType.FSDP, DistributedType.DEEPSPEED):
        raise UserError(
            f"--average {count}: with {kind.value} checkpoints hold no whole weights to average. "
            "Leave it out, or launch with DDP."
        )
    train.keep_checkpoints = max(train.keep_checkpoints, count)


def average_if_better(
    run: Run[Any],
    result: FitResult,
    count: int,
    *,
    validation: Any,
    objective: Objective,
    collate: Collate,
    metric: Metric,
) -> tuple[FitResult, dict[str, Any] | None]:
    """The result with averaged weights where they are better on validation, else as it was.

    Args:
        count: newest checkpoints to average; 0 for none.
        validation: rows, and `objective`, `collate` and `metric` as in training.

    Returns:
        The result, and what the summary records: steps, both validation metrics, and whether the
        average was taken. None where nothing was averaged.
    """
    store = CheckpointStore(run.checkpoint_folders, run.accelerator)
    steps = store.scheduled()[-count:] if count else []
    if len(steps) < 2:
        if count:
            notify(f"nothing to average: training left {len(steps)} checkpoint.")
        return result, None
    single = {name: value.clone() for name, value in result.model.state_dict().items()}
    _load_mean(run, result.model, [store.path(step) / WEIGHTS for step in steps])
    outputs = predict(
        result.model,
        validation,
        compute=objective.outputs,
        collate=collate,
        accelerator=run.accelerator,
        batch_size=run.config.train.eval_batch_size,
    )
    mean, best = metric(outputs), result.state.best_metrics
    sign = 1 if metric.higher_is_better else -1
    taken = bool(sign * mean[metric.selection] > sign * best[metric.selection])
    record = {"steps": steps, "average": mean, "best_single": best, "taken": taken}
    notify(
        f"average of {len(steps)} checkpoints: validation {metric.selection} "
        f"{mean[metric.selection]:.4f}, best single {best[metric.selection]:.4f}; "
        f"the {'average' if taken else 'single one'} is taken."
    )
    if taken:
        return dataclasses.replace(result, validation=outputs), record
    result.model.load_state_dict(single)
    return result, record


def mean_weights(files: list[Path]) -> dict[str, torch.Tensor]:
    """Mean of every tensor over the files, summed in float64; whole numbers as in the last file.

    Raises:
        UserError: a file is not there (sharded training stores its weights otherwise).
    """
    for file in files:
        if not file.is_file():
            raise UserError(
                f"{file.parent} has no {WEIGHTS}: averaging works for models that every process "
                "holds whole, not for FSDP or DeepSpeed. Leave --average out."
            )
    last = load_file(files[-1])
    sums = {name: value.double() for name, value in last.items() if value.is_floating_point()}
    for file in files[:-1]:
        for name, value in load_file(file).items():
            if name in sums:
                sums[name] += value.double()
    means = {name: (value / len(files)).to(last[name].dtype) for name, value in sums.items()}
    return last | means


def _load_mean(run: Run[Any], model: nn.Module, files: list[Path]) -> None:
    """Through a file, because safetensors knows which weights are tied and stored once."""
    file = files[0].parents[1] / ".average.safetensors"
    if run.accelerator.is_main_process:
        save_file(mean_weights(files), file)
    run.accelerator.wait_for_everyone()
    load_model(model, file)
    run.accelerator.wait_for_everyone()
