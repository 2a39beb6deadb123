"""Claims measured one after the other; what goes wrong with one costs no other."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from toolkit.claims import registry
from toolkit.claims.claim import Finding, Measuring
from toolkit.claims.record import Measured
from toolkit.console import fail, notify
from toolkit.environment import describe_environment
from toolkit.errors import UserError, first_line
from toolkit.progress import progress_bar

_PERCENT = 100


def measure_all(
    numbers: Iterable[int],
    seed: int,
    quick: bool,
    command: Callable[[int], str],
    on_measured: Callable[[Measured], None],
) -> None:
    """Measure claims in order and hand over each as soon as it is measured.

    Args:
        command: of a number, the command that measures this claim again.
        on_measured: called with every claim, also where its measurement ended with an error.

    Raises:
        KeyboardInterrupt: the claims handed over until then stand.
    """
    for number in numbers:
        on_measured(measure_one(number, seed, quick, command(number)))


def measure_one(number: int, seed: int, quick: bool, command: str) -> Measured:
    """One claim, its progress shown; an error becomes part of what is found."""
    claim = registry.load(number)
    notify(f"claim {number}: {claim.statement}")
    environment: dict[str, Any] = describe_environment()
    started = time.perf_counter()
    outcome: Finding | str
    with progress_bar(f"claim {number}, {claim.name}", total=_PERCENT) as display:
        shown = 0

        def advance(share: float, words: str) -> None:
            nonlocal shown
            reached = min(_PERCENT, int(_PERCENT * share))
            display.advance(max(0, reached - shown), words)
            shown = max(shown, reached)

        try:
            outcome = claim.measure(Measuring(seed, quick, advance))
        except UserError as error:
            outcome = first_line(error)
        except Exception as error:  # a fault of ours, or of the machine (no memory left)
            traceback.print_exc()
            outcome = f"{type(error).__name__}: {first_line(error)}"
    if isinstance(outcome, str):
        fail(f"claim {number}: {outcome}")
    return Measured.of(
        claim, outcome, seed=seed, quick=quick, seconds=time.perf_counter() - started,
        command=command, environment=environment,
    )  # fmt: skip
