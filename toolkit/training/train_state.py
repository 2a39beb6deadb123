"""Where training stands: what a checkpoint needs besides weights and random states."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class TrainState:
    """Progress, the best evaluation, and what it took so far.

    Of what a checkpoint of an older version does not have, nothing is known: None.
    """

    step: int = 0
    updates: int = 0  # steps that changed the weights; fp16 skips those that overflow
    epoch: int = 0
    best_step: int | None = None
    best_metrics: dict[str, float] = field(default_factory=dict)
    waited: int = 0  # evaluations since the best one
    stopped_early: bool = False
    seconds: float = 0.0  # in training steps, without evaluation and checkpoints
    examples: int = 0
    tokens: int = 0
    processes: int = 1
    padded_tokens: int | None = None  # as computed, of all processes; 0 for images
    flops_counted: int | None = None  # in the steps that were counted; None: cannot be counted
    positions_counted: int = 0  # padded tokens (or images) of these steps
    unwritten: list[str] = field(default_factory=list)  # of the log, for lack of room
    scheduled: bool = True  # False in a checkpoint that only an interruption has made
    skipped: int = 0  # steps left out for a loss or gradient that was not finite
    skipped_on_end: int = 0  # of these, the ones since the last step that was not
    joules: float | None = None  # of the same time as seconds
    energy_source: str | None = None

    @classmethod
    def at_start(cls, processes: int, energy_source: str | None, count_flops: bool) -> TrainState:
        """Nothing done, nothing spent."""
        return cls(
            processes=processes,
            padded_tokens=0,
            flops_counted=0 if count_flops else None,
            joules=None if energy_source is None else 0.0,
            energy_source=energy_source,
        )

    @property
    def flops(self) -> int | None:
        """Of all steps, from those that were counted; None where they could not be."""
        positions = self.padded_tokens or self.examples
        if not self.flops_counted or not positions or self.padded_tokens is None:
            return None
        return round(self.flops_counted / self.positions_counted * positions)
