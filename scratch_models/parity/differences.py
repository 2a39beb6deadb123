"""How far tensors are apart, as rows of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from scratch_models.parity.report import ParityRow

TOLERANCE = 1e-5
"""Of values, absolutely and relative to the largest."""
NOISE = 1e-6
"""What rounding alone may make of a gradient that is 0, relative to the largest of the model."""


def row_of(
    stage: str,
    name: str,
    ours: Mapping[str, Tensor | None],
    theirs: Mapping[str, Tensor | None],
    tolerance: float = TOLERANCE,
) -> ParityRow:
    """The largest difference over tensors of the same key; arguments as `row_of_pairs`."""
    return row_of_pairs(stage, name, [(ours[key], theirs.get(key)) for key in ours], tolerance)


def row_of_pairs(
    stage: str,
    name: str,
    pairs: Sequence[tuple[Tensor | None, Tensor | None]],
    tolerance: float = TOLERANCE,
) -> ParityRow:
    """The largest difference over pairs (ours, HuggingFace's); None stands for one missing.

    The tolerance is meant absolutely, and relative to the largest of HuggingFace's values.
    """
    measured = [difference_of(ours, theirs) for ours, theirs in pairs]
    # max() would lose a NaN that does not stand first.
    differences = [math.inf if math.isnan(d) else d for d, _ in measured]
    scale = max([1.0, *(scale for _, scale in measured)])
    return ParityRow(stage, name, max(differences, default=math.inf), tolerance * scale)


def difference_of(ours: Tensor | None, theirs: Tensor | None) -> tuple[float, float]:
    """The largest absolute difference of two tensors and the largest value of the second."""
    if ours is None or theirs is None or ours.shape != theirs.shape:
        return math.inf, 0.0
    if theirs.numel() == 0:
        return 0.0, 0.0
    scale = largest_value(theirs.detach())
    if torch.equal(ours, theirs):
        return 0.0, scale
    return largest_value(ours.detach() - theirs.detach()), scale


def largest_value(tensor: Tensor) -> float:
    """The largest absolute value, without a second tensor of that size; NaN if there is one."""
    lowest, highest = torch.aminmax(tensor)
    return float(torch.maximum(-lowest, highest))


def count(stage: str, name: str, items: set[str]) -> ParityRow:
    """The number of things that are wrong, none of which is allowed, with the first three named."""
    shown = f" ({', '.join(sorted(items)[:3])}{', …' if len(items) > 3 else ''})" if items else ""
    return ParityRow(stage, name + shown, float(len(items)), 0.0)
