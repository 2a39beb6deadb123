"""Where the texts come from: the settings every text classification recipe shares."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.data.split_config import SplitConfig
from toolkit.errors import UserError

if TYPE_CHECKING:
    from toolkit.data.text_classification import TextClassificationData


@dataclass
class TextDataConfig(SplitConfig):
    """Labelled texts in three splits."""

    dataset: str = "demo:reviews"
    """Hub name (or name@revision), file (csv, tsv, json, jsonl, parquet), folder of splits, or
    demo:reviews."""
    hub_config: str | None = None
    """Configuration of a data set on the Hub that has several."""
    text_column: str | None = None
    """Column with the text; null: found by its name."""
    pair_column: str | None = None
    """Column with a second text, where pairs are classified (premise and hypothesis); null: none.
    """
    label_column: str | None = None
    """Column with the label; null: found by its name."""
    validation_file: str | None = None
    """File with the validation rows; null: the data set's own, or a share of the training rows."""
    test_file: str | None = None
    """File with the test rows; null: the data set's own, or a share of the training rows."""

    def load_data(self) -> "TextClassificationData":
        """Read, check and split the data.

        Raises:
            UserError: whatever is wrong with it, with file and row.
        """
        from toolkit.data.encoding import text_encoding
        from toolkit.data.text_classification import load_text_classification

        with text_encoding(self.encoding):
            return load_text_classification(
                self.dataset,
                hub_config=self.hub_config,
                text_column=self.text_column,
                pair_column=self.pair_column,
                label_column=self.label_column,
                validation_file=self.validation_file,
                test_file=self.test_file,
                train_size=self.train_size,
                validation_size=self.validation_size,
                test_size=self.test_size,
                split_seed=self.split_seed,
                keep_leaks=self.keep_leaks,
            )

    def load_single_texts(self) -> "TextClassificationData":
        """`load_data`, for a model that cannot tell two texts of a row apart.

        Raises:
            UserError: whatever is wrong with the data, or pairs are asked for.
        """
        if self.pair_column is not None:
            raise UserError(
                f"--pair_column {self.pair_column}: this recipe reads one text a row. Pairs are "
                "for recipes/text_classification.py; leave --pair_column out here."
            )
        return self.load_data()
