"""What training will take in steps, memory, disk and time: the content of a dry run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from accelerate.utils import send_to_device
from torch import nn

from toolkit.batching import Collate, Rows, load_batches, padded_lengths_if_any, padded_sizes
from toolkit.data_facts import describe_data
from toolkit.disk import free_space
from toolkit.dry_run import Facts
from toolkit.environment import peak_memory_bytes, resident_memory_bytes
from toolkit.evaluation import Compute
from toolkit.modeling import count_parameters
from toolkit.run import Run
from toolkit.training.activations import Activations, measure_activations
from toolkit.training.first_batch import compute_pass, loss_before_training, shapes, try_evaluation
from toolkit.training.freezing import set_training_mode
from toolkit.training.memory import (
    ModelMemory,
    available_memory,
    model_memory,
    taken_at_worst,
)
from toolkit.training.time_estimate import estimate_evaluation, estimate_time
from toolkit.training.training_steps import Training, plan_passes


def forecast_training(training: Training) -> Facts:
    """Sections of facts, from the largest micro-batch of the first epoch and a few typical ones.

    The weights are no longer the first ones afterwards.
    """
    run, model, device = training.run, training.model, training.run.accelerator.device
    memory = model_memory(model, run.config.train, run.accelerator.num_processes)
    resident, available = resident_memory_bytes(), available_memory(device)
    passes = _passes(training)
    sizes = padded_sizes(passes, padded_lengths_if_any(training.data.train))
    largest = passes[int(sizes.argmax())]
    [batch] = load_batches(Rows(training.data.train), [largest], training.collate)
    batch = send_to_device(batch, device)
    loss = loss_before_training(training, batch)
    set_training_mode(model)
    activations = measure_activations(model, device, lambda: compute_pass(training, batch))
    held = None if device.type == "cuda" or resident is None else resident
    seconds = estimate_time(training, passes)
    compute_pass(training, batch)  # once more, now that the optimizer has its states
    return {
        "data": describe_data(training.data),
        "model": _parameters(run, model),
        "steps": _steps(training, passes),
        "largest micro-batch": {
            "rows": len(largest),
            "padded_tokens": int(sizes.max()) if "input_ids" in batch else None,
            "tensors": shapes(batch),
            "loss_before_training": round(loss, 4),
        },
        "memory": _memory(memory, activations, device, held, available)
        | {"most_held_by_this_dry_run_bytes": peak_memory_bytes(device.type)},
        "disk": _disk(run, memory),
        "time": seconds,
    }


def forecast_evaluation(
    run: Run[Any],
    model: nn.Module,
    data: Any,
    splits: list[str],
    compute: Compute,
    collate: Collate,
) -> Facts:
    """Where nothing is trained by steps: what the model computes of the splits, once each."""
    rows = [getattr(data, split) for split in splits]
    tried = try_evaluation(run, model, rows[0], compute, collate)
    seconds = {
        f"{split}_seconds": estimate_evaluation(
            run.accelerator, model, part, compute, collate, run.config.train.eval_batch_size
        )
        for split, part in zip(splits, rows, strict=True)
    }
    memory = model_memory(model, run.config.train, run.accelerator.num_processes)
    return {
        "data": describe_data(data),
        "model": _parameters(run, model),
        "first batch": tried,
        "memory": {
            "weights_bytes": memory.weights,
            "available_bytes": available_memory(run.accelerator.device),
        },
        "time": {**seconds, "total_seconds": sum(seconds.values())},
    }


def _passes(training: Training) -> list[np.ndarray]:
    """Rows of every forward pass of the first epoch on this process."""
    accelerator = training.run.accelerator
    plan = plan_passes(
        len(training.data.train), training.run.config.train, accelerator.num_processes,
        training.run.config.seed, 0, training.lengths, training.padded,
    )  # fmt: skip
    return [part for _, parts in plan for part in parts[accelerator.process_index]]


def _parameters(run: Run[Any], model: nn.Module) -> dict[str, Any]:
    inner = run.accelerator.unwrap_model(model)
    counts = count_parameters(inner)
    return {
        "class": type(inner).__name__,
        "parameters": counts["parameters_total"],
        "parameters_trained": counts["parameters_trained"],
    }


def _steps(training: Training, passes: list[np.ndarray]) -> dict[str, Any]:
    train, processes = training.run.config.train, training.run.accelerator.num_processes
    by_rows = train.batch_size * train.accumulation_steps * processes
    size = (
        {"rows_per_step": by_rows}
        if train.batch_tokens is None
        else {"padded_tokens_per_step": train.batch_tokens}
    )
    return {
        "per_epoch": training.steps_per_epoch,
        "total": training.total_steps,
        "epochs": round(training.total_steps / training.steps_per_epoch, 2),
        **size,
        "passes_per_step_and_process": round(len(passes) / training.steps_per_epoch, 2),
        "processes": processes,
        "of_warm_up": math.ceil(train.warmup_ratio * training.total_steps),
    }


def _memory(
    memory: ModelMemory,
    activations: Activations,
    device: torch.device,
    resident: int | None,
    available: int,
) -> dict[str, Any]:
    """Bytes of one process.

    Args:
        resident: what the process has taken by now where it shares main memory with the model:
            libraries, data and weights.
    """
    needed = memory.added_by_training + activations.peak
    before = memory.weights if resident is None else resident
    worst = memory.added_by_training + taken_at_worst(activations.peak, device)
    parts: dict[str, Any] = {
        "weights_bytes": memory.weights,
        "gradients_bytes": memory.gradients,
        "optimizer_bytes": memory.optimizer,
    }
    if memory.average:
        parts["average_bytes"] = memory.average
    if memory.buckets:
        parts["exchange_of_gradients_bytes"] = memory.buckets
    parts["activations_saved_for_backward_bytes"] = activations.saved
    parts["activations_at_their_most_bytes"] = activations.peak
    if resident is not None:
        parts["libraries_and_data_bytes"] = max(resident - memory.weights, 0)
    return parts | {
        "total_bytes": before + needed,
        "total_at_worst_bytes": before + worst,  # with what the allocator does not give back
        "still_needed_bytes": worst,
        "available_bytes": available,
        "enough": worst <= available,
    }


def _disk(run: Run[Any], memory: ModelMemory) -> dict[str, Any]:
    # The kept ones, the best one, and the next one while it is written.
    number = run.config.train.keep_checkpoints + 2
    needed, free = number * memory.checkpoint, free_space(run.directory)
    return {
        "checkpoint_bytes": memory.checkpoint,
        "checkpoints_at_once": number,
        "needed_bytes": needed,
        "free_bytes": free,
        "enough": needed <= free,
    }
