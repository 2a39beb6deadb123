"""What a model reads at once of texts that may be longer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import datasets


@dataclass(frozen=True)
class Windows:
    """Overlapping pieces of the texts of three splits, one a row."""

    train: datasets.Dataset
    validation: datasets.Dataset
    test: datasets.Dataset
    summary: dict[str, Any] = field(default_factory=dict)  # of the data they are made of

    @property
    def longest(self) -> int:
        """Tokens of the longest window."""
        return max(max(rows["length"][:]) for rows in (self.train, self.validation, self.test))
