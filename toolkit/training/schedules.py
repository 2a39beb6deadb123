"""Learning rates over the course of training, counted in optimizer steps."""

from __future__ import annotations

import math

from toolkit.config import TrainConfig


def schedule_factor(updates: float, total_steps: int, train: TrainConfig) -> float:
    """Share of the peak learning rate for the next update.

    It rises from 0 in the warm-up; a linear or cosine schedule is 0 exactly after the last update.

    Args:
        updates: optimizer updates done so far; a fraction where time is what runs out.
        total_steps: optimizer updates of the whole training.
        train: names the schedule and the share of its warm-up.
    """
    warmup = round(train.warmup_ratio * total_steps)
    if updates < warmup:
        return updates / warmup
    if train.schedule == "constant":
        return 1.0
    if train.schedule == "inverse_sqrt":
        return math.sqrt(max(warmup, 1) / max(updates, 1))
    if updates >= total_steps:  # also where the warm-up takes all steps
        return 0.0
    progress = (updates - warmup) / (total_steps - warmup)
    return 1 - progress if train.schedule == "linear" else (1 + math.cos(math.pi * progress)) / 2


def noam_learning_rate(step: int, d_model: int, warmup_steps: int = 4000) -> float:
    """The learning rate of "Attention Is All You Need", §5.3, equation (3).

    d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5): a linear rise to its peak
    (d_model * warmup_steps)^-0.5, then a fall with the square root of the step. Schedule
    `inverse_sqrt` has this shape and takes its peak from the learning rate in the config.

    Args:
        step: number of the update, from 1.
        d_model: width of the model.
        warmup_steps: updates up to the peak.

    Raises:
        ValueError: for a step, a width or a warm-up below 1.
    """
    if min(step, d_model, warmup_steps) < 1:
        raise ValueError(
            f"step {step}, d_model {d_model}, warmup_steps {warmup_steps}: expected numbers of at "
            "least 1."
        )
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))
