"""Where tagged sentences come from: the settings of a token classification recipe's data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from toolkit.data.split_config import SplitConfig

if TYPE_CHECKING:
    from toolkit.data.tagging import TaggingData


@dataclass
class TaggingDataConfig(SplitConfig):
    """Tagged sentences in three splits."""

    dataset: str = "demo:entities"
    """demo:entities, CoNLL file (token and tag a line, empty line between sentences), table (json,
    jsonl, parquet) with lists of tokens and tags, folder of splits, or Hub name."""
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
                sizes=self.sizes,
                split_seed=self.split_seed,
                keep_leaks=self.keep_leaks,
            )
