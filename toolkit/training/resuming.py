"""Where training begins, where it goes on after an interruption, and the best it comes to."""

from __future__ import annotations

from typing import Any

from accelerate import Accelerator
from accelerate.utils import DistributedType

from toolkit.clock import Clock
from toolkit.console import notify
from toolkit.environment import describe_processes
from toolkit.errors import UserError
from toolkit.run import Run
from toolkit.run_origin import recorded_environment
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
        UserError: the run was started with another number of processes, in another precision, or
            with weights divided otherwise.
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
    _check_launcher(run)
    if newest is not None:
        store.restore(newest)
    if state.energy_source != clock.source:  # joules of other things cannot be added up
        state.joules = state.energy_source = None
    if state.best_step not in (None, state.step):
        _forget_damaged_best(store, state)
    run.forget_after(state.step)
    run.recall_log(state.unwritten)
    notify(f"resuming {run.directory} after step {state.step}")
    return state


def _check_launcher(run: Run[Any]) -> None:
    """What the launcher decides must be as it was, or it is another training."""
    then = recorded_environment(run.directory).get("accelerate", {})
    now = describe_processes(run.accelerator)
    for name, words in (
        ("mixed_precision", "computed in {} (mixed precision)"),
        ("distributed_type", "distributed as {}"),
    ):
        if name in then and then[name] != now[name]:
            raise UserError(
                f"--resume {run.directory}: it was {words.format(then[name])}, now it would be "
                f"{words.format(now[name])}. Launch it as it was started, with the same options of "
                "the launcher."
            )


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
