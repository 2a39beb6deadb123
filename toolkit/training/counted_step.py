"""The floating point operations of training, from a few of its steps.

Steps 1, 2, 4, 8 and so on are counted: the operations of a text depend on its length (attention
grows with its square), and batches of similar length make the first step a poor sample. All others
follow from their padded tokens. Images are all alike: one step says it all. What was counted is in
`TrainState`, so that a resumed run ends with the number of one that was left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from toolkit.compute import FlopCounter
from toolkit.console import notify
from toolkit.errors import UserError, first_line
from toolkit.training.train_state import TrainState


def is_counted(state: TrainState, images: bool) -> bool:
    """Whether the operations of the next step are to be counted."""
    if state.flops_counted is None:
        return False
    number = state.step + 1
    return state.positions_counted == 0 or (not images and number & (number - 1) == 0)


def compute_counted(
    accelerator: Accelerator,
    model: nn.Module,
    state: TrainState,
    positions: int | Tensor,
    compute: Callable[[], Tensor],
) -> Tensor:
    """What `compute` gives, with its operations added to the state: those of all processes.

    The result has the same bits as without counting. Where counting fails, `compute` is called
    once more, from the same random state, and nothing is counted from then on.

    Args:
        positions: padded tokens, or images, of all processes.
        compute: forward and backward passes of one step, which begin without gradients.
    """
    recall = remember(model)
    try:
        with FlopCounter() as counter:
            result = compute()
        flops, problem = counter.flops, f"no formula for {', '.join(sorted(counter.unknown))}"
    except UserError:
        raise
    except Exception as error:  # of the counter; if it is the step's own, it is raised again
        recall()
        result = compute()
        flops, problem = None, f"{type(error).__name__}: {first_line(error)}"
    numbers = torch.tensor([flops or 0, flops is None], device=accelerator.device)
    total, failed = accelerator.reduce(numbers, reduction="sum").tolist()
    if failed:
        notify(f"floating point operations are not counted ({problem})")
        state.flops_counted = None
    elif state.flops_counted is not None:
        state.flops_counted += total
        state.positions_counted += int(positions)
    return result


def remember(model: nn.Module) -> Callable[[], None]:
    """A function that undoes what forward and backward passes leave behind."""
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    random: Any = torch.get_rng_state()
    on_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []

    def recall() -> None:
        torch.set_rng_state(random)
        if on_gpus:
            torch.cuda.set_rng_state_all(on_gpus)
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
        for parameter in model.parameters():
            parameter.grad = None

    return recall
