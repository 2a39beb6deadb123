"""What a model reads at once of texts that may be longer."""

from __future__ import annotations

from dataclasses import dataclass

import datasets


@dataclass(frozen=True)
class Windows:
    """Overlapping pieces of the texts of three splits, one a row."""

    train: datasets.Dataset
    validation: datasets.Dataset
    test: datasets.Dataset

    @property
    def longest(self) -> int:
        """Tokens of the longest window."""
        return max(max(rows["length"][:]) for rows in (self.train, self.validation, self.test))
