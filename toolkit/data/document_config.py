"""Where documents come from: the settings of recipes that learn from running text."""

# No `from __future__ import annotations` here, as in `toolkit.config`.
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from toolkit.data.split_config import SplitConfig

if TYPE_CHECKING:
    from toolkit.data.documents import Documents


@dataclass
class DocumentDataConfig(SplitConfig):
    """Documents in three splits."""

    dataset: str = "demo:reviews"
    """Text file (.txt, .md), table with a text column (csv, tsv, json, jsonl, parquet), folder of
    text files or of splits, Hub name, or demo:reviews."""
    hub_config: str | None = None
    """Configuration of a data set on the Hub that has several, e.g. wikitext-2-raw-v1."""
    documents: Literal["line", "paragraph", "article", "file"] = "line"
    """What one document is: a line (of a table: a row); lines up to an empty one; lines up to the
    next heading ` = Title = ` (WikiText); or a whole file."""
    text_column: str | None = None
    """Column with the text; null: found by its name."""
    validation_file: str | None = None
    """File with validation documents; null: the data set's own, or a share of the others."""
    test_file: str | None = None
    """File with test documents; null: the data set's own, or a share of the others."""

    def load_data(self) -> "Documents":
        """Read, check and split the data.

        Raises:
            UserError: whatever is wrong with it, with file and line.
        """
        from toolkit.data.documents import load_documents
        from toolkit.data.encoding import text_encoding

        with text_encoding(self.encoding):
            return load_documents(
                self.dataset,
                hub_config=self.hub_config,
                unit=self.documents,
                text_column=self.text_column,
                held_out_files={"validation": self.validation_file, "test": self.test_file},
                sizes=self.sizes,
                split_seed=self.split_seed,
                keep_leaks=self.keep_leaks,
            )
