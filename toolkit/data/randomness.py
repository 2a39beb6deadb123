"""Random numbers that are a function of what they are for, not of when they are drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def uniforms(
    seed: int, epoch: int, rows: NDArray[np.int64], purpose: int, count: int
) -> NDArray[np.float64]:
    """Numbers in [0, 1) for every row of an epoch, [rows, count].

    A row gets the same ones in whatever batch, process or resumed run it comes. `purpose` keeps
    uses apart. They are splitmix64 (Steele et al. 2014, "Fast splittable pseudorandom number
    generators") chained over the five numbers.
    """
    state = np.zeros((len(rows), count), dtype=np.uint64)
    for part in (seed, purpose, epoch, rows[:, np.newaxis], np.arange(count)):
        state = _mix(state + np.asarray(part).astype(np.uint64))
    # The upper 53 bits: a float64 holds them exactly.
    return (state >> np.uint64(11)).astype(np.float64) / 2.0**53


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of splitmix64; sums and products wrap around."""
    state = state + _STEP
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    return state ^ (state >> np.uint64(31))
