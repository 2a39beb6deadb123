"""Where tagged sentences come from: the settings of a token classification recipe's data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from toolkit.data.tagging import TaggingData


@dataclass
class TaggingDataConfig:
    """Tagged sentences in three splits."""

    dataset: str = "demo:entities"
    """demo:entities, CoNLL file (token and tag a line, empty line between sentences), table (json,
    jsonl, parquet) with lists of tokens and tags, folder of splits, or Hub name."""
    encoding: str | None = None
    """Encoding of text files, such as big5; null: told from the bytes (UTF-8, UTF-16 with its mark,
    GB18030)."""
    tokens_column: str | None = None
    """Column of a table with the tokens; null: found by its name."""
    tags_column: str | None = None
    """Column of a table with the tags; null: found by its name."""
    scheme: Literal["auto", "bio", "iob1", "bioes", "bmes", "bilou"] = "auto"
    """How the tags mark entities; auto: told from their prefixes. The model learns bio."""
    validation_file: str | None = None
    """File with the validation sentences; null: the data set's own, or a share of the training
    ones."""
    test_file: str | None = None
    """File with the test sentences; null: the data set's own, or a share of the training ones."""
    train_size: int | None = None
    """Train on so many sentences only; a smaller number is part of a larger one."""
    validation_size: int | None = None
    """Validation sentences to use; null: all, or a tenth where they are split off."""
    test_size: int | None = None
    """Test sentences to use; null: all, or a tenth where they are split off."""
    split_seed: int = 0
    """Seed of splits that are made; apart from --seed, so that all runs test on the same ones."""
    keep_leaks: bool = False
    """Keep training sentences that also stand in validation or test; they are removed if not."""

    def load_data(self) -> "TaggingData":
        """Read, check and split the sentences.

        Raises:
            UserError: whatever is wrong with them, with file and line.
        """
        from toolkit.data.encoding import text_encoding
        from toolkit.data.tagging import load_tagging

        with text_encoding(self.encoding):
            return load_tagging(
                self.dataset,
                tokens_column=self.tokens_column,
                tags_column=self.tags_column,
                scheme=self.scheme,
                validation_file=self.validation_file,
                test_file=self.test_file,
                sizes={
                    "train": self.train_size,
                    "validation": self.validation_size,
                    "test": self.test_size,
                },
                split_seed=self.split_seed,
                keep_leaks=self.keep_leaks,
            )
