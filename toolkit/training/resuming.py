"""Where training begins, where it goes on after an interruption, and the best it comes to."""

from __future__ import annotations

from typing import Any

from accelerate import Accelerator
from accelerate.utils import DistributedType

from toolkit.clock import Clock
from toolkit.console import notify
from toolkit.errors import UserError
from toolkit.run import Run
from toolkit.training.checkpoint import CheckpointStore
from toolkit.training.train_state import TrainState


def new_state(accelerator: Accelerator, clock: Clock) -> TrainState:
    """Where a run begins."""
    # Counting follows every operation, which these do not bear: they replace weights underneath.
    counts = accelerator.distributed_type not in (DistributedType.FSDP, DistributedType.DEEPSPEED)
    return TrainState.at_start(accelerator.num_processes, clock.source, counts)


def resume(run: Run[Any], store: CheckpointStore, clock: Clock) -> TrainState:
    """Load the newest complete checkpoint, if there is one, and drop what was logged after it.

    Raises:
        UserError: the run was started with another number of processes.
    """
    accelerator = run.accelerator
    newest, processes = store.newest(), accelerator.num_processes
    # Before anything is loaded: a process that was not there then finds no random state of its own.
    state = new_state(accelerator, clock)
    if newest is not None:
        state = TrainState(**store.state(newest))
    if state.processes != processes:
        raise UserError(
            f"--resume {run.directory}: it was started with {state.processes} processes, now there "
            f"are {processes}. Resume with {state.processes}."
        )
    if newest is not None:
        store.restore(newest)
    if state.energy_source != clock.source:  # joules of other things cannot be added up
        state.joules = state.energy_source = None
    if state.best_step not in (None, state.step):
        _forget_damaged_best(store, state)
    run.forget_after(state.step)
    notify(f"resuming {run.directory} after step {state.step}")
    return state


def restore_best(store: CheckpointStore, state: TrainState) -> None:
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
