"""`--lr-finder`: raise the learning rate step by step and see where the loss falls and breaks.

The range test of Smith 2017 (arXiv:1506.01186, section 3.3) with a rate that grows exponentially,
one batch a step. Nothing is trained for keeps: the recipe ends after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import NoReturn

import numpy as np
from rich.table import Table

from toolkit.command_line import command_line
from toolkit.console import console, is_main_process, notify
from toolkit.disk import write_whole
from toolkit.errors import RecipeEnds, UserError
from toolkit.progress import progress_bar
from toolkit.training.freezing import set_training_mode
from toolkit.training.training_steps import NotFiniteError, Training, train_step, training_steps

LOWEST, HIGHEST, STEPS = 1e-7, 10.0, 100
MEMORY = 0.9
"""Share that the smoothed loss keeps of itself at every step."""
BROKEN = 2.0
"""The test ends where the smoothed loss is so many times the lowest one."""
FALL = 0.05
"""A loss that never falls by this share of its first value is taken for one that does not fall."""
UNSTEADY = 10
"""Steps after which the smoothed loss is steady enough to read a slope off."""
CAUTION = 10.0
"""The rate to begin with is that of the lowest loss divided by this."""


@dataclass(frozen=True)
class RangeTest:
    """What was seen: ``learning_rates``, the ``losses`` at them, and these smoothed.

    ``suggestion`` is a tenth of the rate with the lowest smoothed loss, None where it never fell.
    ``steepest`` is the rate at which it fell fastest, against the logarithm of the rate.
    """

    learning_rates: list[float]
    losses: list[float]
    smoothed: list[float]
    lowest: float
    steepest: float
    suggestion: float | None
    stopped: str


def learning_rates(steps: int = STEPS) -> list[float]:
    """Rates from `LOWEST` to `HIGHEST`, each the same number of times the one before."""
    return [float(rate) for rate in np.geomspace(LOWEST, HIGHEST, steps)]


def smooth(losses: list[float]) -> list[float]:
    """Exponential moving averages, corrected for their start at 0 as Adam's are."""
    average, smoothed = 0.0, []
    for number, loss in enumerate(losses, start=1):
        average = MEMORY * average + (1 - MEMORY) * loss
        smoothed.append(average / (1 - MEMORY**number))
    return smoothed


def conclude(rates: list[float], losses: list[float], stopped: str) -> RangeTest:
    """Read the curve.

    Args:
        rates, losses: of every step that was done, at least two.
        stopped: why there was no further one.
    """
    smoothed = smooth(losses)
    lowest = int(np.argmin(smoothed))
    slopes = np.gradient(smoothed, np.log(rates))
    first = min(UNSTEADY, lowest)  # before that the average follows single batches
    steepest = first + int(np.argmin(slopes[first : lowest + 1]))
    fell = smoothed[lowest] < (1 - FALL) * smoothed[0]
    return RangeTest(
        learning_rates=rates,
        losses=losses,
        smoothed=smoothed,
        lowest=rates[lowest],
        steepest=rates[steepest],
        suggestion=float(f"{rates[lowest] / CAUTION:.1e}") if fell else None,
        stopped=stopped,
    )


def end_with_learning_rate(training: Training) -> NoReturn:
    """Run the test, print and write what it found, and end the recipe.

    ``learning_rates.json`` and ``learning_rates.svg`` go to a folder of their own beside the runs:
    there is no run.

    Raises:
        RecipeEnds: when it is done.
        UserError: the folder cannot be made.
    """
    run = training.run
    folder = run.directory.with_name(f"lr-finder-{run.directory.name}")
    if is_main_process():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {folder}: {error.strerror}") from None
    result = conclude(*_raise_the_rate(training))
    if is_main_process():
        document = {"command": command_line(), **asdict(result)}
        write_whole(folder / "learning_rates.json", json.dumps(document, indent=2) + "\n")
        points = list(zip(result.learning_rates, result.losses, strict=True))
        line = list(zip(result.learning_rates, result.smoothed, strict=True))
        from toolkit.plots import learning_rate_curve, save_figure  # and with it matplotlib

        figure = learning_rate_curve(points, line, result.suggestion)
        save_figure(figure, folder / "learning_rates.svg")
        _print(result)
        notify(f"the curve: {folder / 'learning_rates.svg'}, its numbers: learning_rates.json")
    raise RecipeEnds


def _raise_the_rate(training: Training) -> tuple[list[float], list[float], str]:
    """Steps at rising rates; the rates and losses of those that were done, and why it ended."""
    training.total_steps = STEPS  # also where the data are fewer: they are passed several times
    training.run.config.train.max_seconds = None
    training.run.config.train.not_finite = "stop"  # it is what is looked for
    training.average = None
    set_training_mode(training.model)
    rates: list[float] = []
    losses: list[float] = []
    with progress_bar("learning rates", STEPS) as display:
        for rate, loss in _steps(training):
            rates.append(rate)
            losses.append(loss)
            display.advance(1, f"rate {rate:.1e}  loss {loss:.4f}")
            smoothed = smooth(losses)
            if len(losses) > 1 and smoothed[-1] > BROKEN * min(smoothed):
                return rates, losses, f"the loss became {BROKEN:g} times its lowest"
    if len(losses) < STEPS:
        return rates, losses, "the loss or the gradient became NaN or infinite"
    return rates, losses, "all rates were tried"


def _steps(training: Training) -> Iterator[tuple[float, float]]:
    for rate, step in zip(learning_rates(), training_steps(training), strict=False):
        try:
            report = train_step(training, step, rate)
        except NotFiniteError:
            if training.state.step < 2:
                raise  # at the lowest rates: it is not the rate
            return
        training.state.step += 1
        yield rate, report["loss"]


def _print(result: RangeTest) -> None:
    table = Table(title="loss at rising learning rates", title_justify="left")
    table.add_column("learning rate", justify="right")
    table.add_column("loss, smoothed", justify="right")
    shown = np.unique(np.linspace(0, len(result.losses) - 1, 12).round().astype(int))
    for place in shown:
        table.add_row(f"{result.learning_rates[place]:.1e}", f"{result.smoothed[place]:.4f}")
    console.print(table)
    if result.suggestion is None:
        console.print(
            f"The loss never fell by {FALL:.0%}: nothing to suggest. Either nothing is learned in "
            f"{STEPS} steps at any rate, or the batches are too small to tell. The test ended "
            f"because {result.stopped}."
        )
    else:
        console.print(
            f"Lowest at {result.lowest:.1e}, falling fastest at {result.steepest:.1e}; the test "
            f"ended because {result.stopped}.\n"
            f"To begin with: --train.learning_rate {result.suggestion:g} (a tenth of the rate with "
            "the lowest loss; the lowest loss itself is at the edge of what training bears)."
        )
