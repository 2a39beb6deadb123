"""How the examples of any task are read and divided: settings that all data sets share."""

# No `from __future__ import annotations` here, as in `toolkit.config`.
from dataclasses import dataclass


@dataclass
class SplitConfig:
    """Encoding of files, sizes of the splits, and rows that stand in two of them."""

    encoding: str | None = None
    """Encoding of text files, such as big5; null: told from the bytes (UTF-8, UTF-16 with its mark,
    GB18030)."""
    train_size: int | None = None
    """Train on so many examples only; a smaller number is part of a larger one."""
    validation_size: int | None = None
    """Validation examples to use; null: all, or a tenth where they are split off."""
    test_size: int | None = None
    """Test examples to use; null: all, or a tenth where they are split off."""
    split_seed: int = 0
    """Seed of splits that are made; apart from --seed, so that all runs test on the same examples.
    """
    keep_leaks: bool = False
    """Keep training examples whose text (pair, source text, question with its context, image) also
    stands in validation or test; they are removed if not."""

    @property
    def sizes(self) -> dict[str, int | None]:
        """Examples asked for, by split."""
        return {
            "train": self.train_size,
            "validation": self.validation_size,
            "test": self.test_size,
        }
