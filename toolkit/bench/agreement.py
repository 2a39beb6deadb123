"""Do two programs give the same? Asked before they are timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from toolkit.bench import ResultsDiffer

TOLERANCES = {"fp32": 1e-4, "bf16": 0.1}
"""Largest difference of a logit of order 1, by precision."""


def agree(
    results: Mapping[str, Any], ours: str, what: str, tolerance: float
) -> dict[str, float | str]:
    """Compare ours with every other side, number by number.

    Args:
        results: of every side, numbers of the same shape.
        what: is compared, in words.

    Raises:
        ResultsDiffer: says which side, where and by how much.
    """
    own, largest = as_numbers(results[ours]), 0.0
    for name, result in results.items():
        if name == ours:
            continue
        other = as_numbers(result)
        if own.shape != other.shape:
            raise ResultsDiffer(f"{ours} and {name} give {own.size} and {other.size} numbers.")
        if not own.size:
            raise ResultsDiffer(f"{ours} and {name} give nothing that could be compared.")
        differences = np.abs(own - other)
        place = int(differences.argmax())
        difference = float(differences[place])
        if not difference <= tolerance:
            raise ResultsDiffer(
                f"{ours} and {name} differ by {difference:.2g} in number {place + 1} of {own.size} "
                f"({what}), where {tolerance:g} is allowed: no ratio of speeds is given."
            )
        largest = max(largest, difference)
    return {"compared": what, "largest_difference": largest, "tolerance": tolerance}


def as_numbers(result: Sequence[Any]) -> np.ndarray:
    """Tensors or numbers, one after the other."""
    parts = [np.asarray(part, dtype=np.float64).ravel() for part in result]
    return np.concatenate(parts) if parts else np.zeros(0)
