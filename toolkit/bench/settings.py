"""What a user can say about every benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


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

    @property
    def dtype(self) -> torch.dtype:
        """Of the precision."""
        import torch  # not for --help

        return {"fp32": torch.float32, "bf16": torch.bfloat16}[self.precision]
