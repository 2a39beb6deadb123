"""What a user can say about every benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BenchSettings:
    """Rounds, size, place and precision."""

    rounds: int = 5
    """How often each contender is timed, after a warm-up."""
    full: bool = False
    """The large size instead of the one for minutes."""
    device: str = "cpu"
    """cpu or cuda."""
    precision: str = "fp32"
    """fp32 or bf16 (autocast, on both sides)."""
    memory: bool = True
    """Whether peak memory is measured, in processes of their own."""
