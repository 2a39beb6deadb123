"""`--train.auto_batch_size`: the largest micro-batch that fits, in the same global batch.

Only how the rows of a step are divided into forward passes is chosen: batch_size times
accumulation_steps stays what it was, and the losses are the same but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from accelerate.utils import DistributedType, gather_object, send_to_device
from accelerate.utils.memory import clear_device_cache
from torch import nn

from toolkit.batching import (
    Collate,
    Rows,
    load_batches,
    padded_lengths_if_any,
    padded_sizes,
    row_lengths,
)
from toolkit.config import TrainConfig
from toolkit.console import notify
from toolkit.errors import UserError
from toolkit.memory_errors import is_out_of_memory
from toolkit.objectives import Objective
from toolkit.run import Run
from toolkit.training import memory
from toolkit.training.activations import measure_activations
from toolkit.training.counted_step import remember
from toolkit.training.freezing import set_training_mode
from toolkit.training.training_steps import plan_passes
from toolkit.units import size

MEASURED_ROWS = 4
"""On a CPU activations are measured of so many rows; what more rows need follows."""
SHARE = 0.9
"""Of the main memory that is free, the part that may be used."""


@dataclass(frozen=True)
class Division:
    """How the rows of a step may be divided: the two settings, and the largest pass they make."""

    batch_size: int
    accumulation_steps: int
    rows: np.ndarray  # longest first


def choose_batch_size(
    run: Run[Any], model: nn.Module, data: Any, objective: Objective, collate: Collate
) -> None:
    """Set ``batch_size`` and ``accumulation_steps`` to the fewest passes that fit, and say so.

    With ``batch_tokens`` the number of passes alone. The largest pass is tried on a GPU, where
    running out of memory can be noticed. On a CPU it would end the process: there its activations
    are measured on a few rows. Model and random states are left as they were.

    Raises:
        UserError: one row alone does not fit, or the weights are divided among processes.
    """
    train, accelerator = run.config.train, run.accelerator
    if accelerator.distributed_type in (DistributedType.FSDP, DistributedType.DEEPSPEED):
        raise UserError(
            f"--train.auto_batch_size: with {accelerator.distributed_type.value} a process does "
            "not hold the whole model, so that nothing can be tried before it is divided. Give "
            "--train.batch_size and --train.accumulation_steps."
        )
    divisions = list(possible_divisions(run, data.train))
    work = _Work(run, model.to(accelerator.device), data.train, objective, collate)
    fits = work.fits_by_measure if accelerator.device.type == "cpu" else work.fits_in_fact
    restore, training = remember(model), model.training
    set_training_mode(model)
    try:
        chosen = next((n for n, division in enumerate(divisions) if fits(division)), None)
    finally:
        restore()
        model.train(training)
    most = len(divisions)
    agreed = max(gather_object([most if chosen is None else chosen]))
    if agreed == most:
        raise UserError(_nothing_fits(train, divisions[-1], work.found))
    division = divisions[agreed]
    train.batch_size = division.batch_size
    train.accumulation_steps = division.accumulation_steps
    notify(_in_words(train, division, work.found))


def possible_divisions(run: Run[Any], rows: Any) -> Iterator[Division]:
    """From all rows of a process's step in one pass down to one row a pass."""
    train, processes = run.config.train, run.accelerator.num_processes
    if train.batch_tokens is None:
        lengths = row_lengths(rows)
        order = np.arange(len(rows)) if lengths is None else np.argsort(-lengths, kind="stable")
        share = train.batch_size * train.accumulation_steps
        for size in range(share, 0, -1):
            if share % size == 0:  # else the global batch would be another
                yield Division(size, share // size, order[:size])
        return
    padded = padded_lengths_if_any(rows)
    settings = TrainConfig(batch_tokens=train.batch_tokens, accumulation_steps=1)
    while True:
        plan = plan_passes(len(rows), settings, processes, run.config.seed, 0, None, padded)
        passes = [part for _, parts in plan for shares in parts for part in shares]
        largest = passes[int(padded_sizes(passes, padded).argmax())]
        if padded is not None:
            largest = largest[np.argsort(-padded[largest].sum(1), kind="stable")]
        yield Division(train.batch_size, settings.accumulation_steps, largest)
        if max(map(len, passes)) == 1:
            return
        settings.accumulation_steps *= 2


class _Work:
    """Forward and backward passes of a model before it is trained.

    ``found`` says in words what was measured.
    """

    def __init__(
        self, run: Run[Any], model: nn.Module, data: Any, objective: Objective, collate: Collate
    ) -> None:
        self.accelerator, self.model, self.data = run.accelerator, model, data
        self.objective, self.collate = objective, collate
        self.memory = memory.model_memory(model, run.config.train, self.accelerator.num_processes)
        self.found = ""

    def compute(self, rows: np.ndarray) -> None:
        """One micro-batch, as training computes it."""
        [batch] = load_batches(Rows(self.data), [rows], self.collate)
        with self.accelerator.autocast():
            sums = self.objective.loss(self.model, send_to_device(batch, self.accelerator.device))
        sums.sum().backward()

    def fits_in_fact(self, division: Division) -> bool:
        """Compute it with as much memory taken as training will have taken by then."""
        device, trained = self.accelerator.device, self.memory.added_by_training
        taken = trained - self.memory.gradients

        def attempt() -> None:
            kept = torch.empty(taken, dtype=torch.uint8, device=device)
            self.compute(division.rows)
            del kept

        fitted = _succeeds(attempt)
        self.model.zero_grad(set_to_none=True)
        clear_device_cache(garbage_collection=True)  # for the next one, and for training
        self.found = "tried with the longest rows"
        return fitted

    def fits_by_measure(self, division: Division) -> bool:
        """Compare what it will need with what is free."""
        free = int(SHARE * memory.available_memory(self.accelerator.device))
        activations = self._activations(division.rows)
        needed = self.memory.added_by_training + memory.taken_at_worst(
            activations, self.accelerator.device
        )
        self.found = (
            f"{size(needed)} needed of {size(free)}: gradients and optimizer "
            f"{size(self.memory.added_by_training)}, activations {size(activations)} x "
            f"{memory.ALLOCATOR_FACTOR:g} + {size(memory.ALLOCATOR_ROOM)} for the allocator; "
            f"{1 - SHARE:.0%} of what is free stays so"
        )
        return needed <= free

    def _activations(self, rows: np.ndarray) -> int:
        """Bytes at their most, from those of the first few of the rows."""
        few, half = rows[:MEASURED_ROWS], rows[: MEASURED_ROWS // 2]
        full = self._measure(few)
        if len(rows) <= MEASURED_ROWS:
            return full.peak
        # The peak may be a large gradient that does not grow with the rows, where what is saved
        # does: more rows then have another peak.
        per_row = (full.peak - self._measure(half).peak) / (len(few) - len(half))
        per_row = max(per_row, full.saved / len(few))
        return int(full.peak + per_row * (len(rows) - len(few)))

    def _measure(self, rows: np.ndarray) -> Any:
        try:
            return measure_activations(
                self.model, self.accelerator.device, lambda: self.compute(rows)
            )
        finally:
            self.model.zero_grad(set_to_none=True)


def _succeeds(attempt: Callable[[], None]) -> bool:
    """False where memory ran out; what the error held is free when this returns."""
    try:
        attempt()
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return False
    return True


def _in_words(train: TrainConfig, division: Division, found: str) -> str:
    passes = f"--train.accumulation_steps {division.accumulation_steps}"
    if train.batch_tokens is None:
        passes = f"--train.batch_size {division.batch_size} {passes}"
    return f"micro-batches of up to {len(division.rows)} rows fit: {passes} ({found})"


def _nothing_fits(train: TrainConfig, division: Division, found: str) -> str:
    remedies = ["shorter inputs (--max_length)", "--method lora"]
    if not train.gradient_checkpointing:
        remedies.insert(0, "--train.gradient_checkpointing")
    return (
        f"--train.auto_batch_size: not even {len(division.rows)} row fits ({found}). Try "
        f"{', '.join(remedies)}, or a smaller model."
    )
