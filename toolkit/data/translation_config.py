"""Where parallel texts come from: the settings of a translation recipe's data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.data.split_config import SplitConfig

if TYPE_CHECKING:
    from toolkit.data.translation import TranslationData


@dataclass
class TranslationDataConfig(SplitConfig):
    """Texts in two languages, in three splits."""

    dataset: str = "demo:dates"
    """demo:dates, folder of parallel files (train.en, train.zh, …), table, folder of tables, or Hub
    name."""
    hub_config: str | None = None
    """Configuration of a data set on the Hub that has several, e.g. de-en."""
    source: str = "en"
    """Code of the language to translate from; ending of parallel files, name of columns."""
    target: str = "zh"
    """Code of the language to translate into."""
    source_file: str | None = None
    """Training texts, one a line (also .gz); with --target_file in place of --dataset."""
    target_file: str | None = None
    """Their translations, line by line."""
    validation_source_file: str | None = None
    """Likewise to validate with; null: a share of the training pairs."""
    validation_target_file: str | None = None
    """Their translations."""
    test_source_file: str | None = None
    """Likewise to test with; null: a share of the training pairs."""
    test_target_file: str | None = None
    """Their translations."""
    source_column: str | None = None
    """Column of a table; null: found by its name. A number where the first line is no header."""
    target_column: str | None = None
    """Likewise for the translations."""
    test_name: str | None = None
    """Which test files of a folder that has several, such as test_2016_flickr."""

    def load_data(self) -> "TranslationData":
        """Read, check and split the pairs.

        Raises:
            UserError: whatever is wrong with them, with file and line.
        """
        from toolkit.data.encoding import text_encoding
        from toolkit.data.parallel import read_parallel, read_parallel_files
        from toolkit.data.translation import split_pairs

        files = {
            "train": (self.source_file, self.target_file),
            "validation": (self.validation_source_file, self.validation_target_file),
            "test": (self.test_source_file, self.test_target_file),
        }
        with text_encoding(self.encoding):
            if any(file for two in files.values() for file in two):
                source, name = read_parallel_files(files), f"{self.source_file}, {self.target_file}"
            else:
                name = self.dataset
                source = read_parallel(
                    self.dataset,
                    self.source,
                    self.target,
                    hub_config=self.hub_config,
                    source_column=self.source_column,
                    target_column=self.target_column,
                    test_name=self.test_name,
                )
        return split_pairs(
            source,
            name,
            (self.source, self.target),
            sizes=self.sizes,
            split_seed=self.split_seed,
            keep_leaks=self.keep_leaks,
        )
