"""Outputs of some places only: a head over a whole vocabulary is most of a small model's work."""

from __future__ import annotations

from torch import Tensor


def at_places(values: Tensor, places: Tensor | None) -> Tensor:
    """[batch, length, ...] -> [places, ...], row by row; None leaves everything as it is.

    Args:
        values: of every place.
        places: [batch, length], true where they are wanted.

    Raises:
        ValueError: places of another shape.
    """
    if places is None:
        return values
    if places.shape != values.shape[:2]:
        raise ValueError(
            f"logits_at is {list(places.shape)} but the input is {list(values.shape[:2])} "
            "(batch, length): they must be equal."
        )
    return values[places.bool()]
