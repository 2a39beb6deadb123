"""Where documents come from: the settings of recipes that learn from running text."""

# No `from __future__ import annotations` here, as in `toolkit.config`.
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from toolkit.data.documents import Documents


@dataclass
class DocumentDataConfig:
    """Documents in three splits."""

    dataset: str = "demo:reviews"
    """Text file (.txt, .md), table with a text column (csv, tsv, json, jsonl, parquet), folder of
    text files or of splits, Hub name, or demo:reviews."""
    hub_config: str | None = None
    """Configuration of a data set on the Hub that has several, e.g. wikitext-2-raw-v1."""
    documents: Literal["line", "paragraph", "article", "file"] = "line"
    """What one document is: a line (of a table: a row); lines up to an empty one; lines up to the
    next heading ` = Title = ` (WikiText); or a whole file."""
    encoding: str | None = None
    """Encoding of text files, such as big5; null: told from the bytes (UTF-8, UTF-16 with its mark,
    GB18030)."""
    text_column: str | None = None
    """Column with the text; null: found by its name."""
    validation_file: str | None = None
    """File with validation documents; null: the data set's own, or a share of the others."""
    test_file: str | None = None
    """File with test documents; null: the data set's own, or a share of the others."""
    train_size: int | None = None
    """Train on so many documents only; a smaller number is part of a larger one."""
    validation_size: int | None = None
    """Validation documents to use; null: all, or a tenth where they are split off."""
    test_size: int | None = None
    """Test documents to use; null: all, or a tenth where they are split off."""
    split_seed: int = 0
    """Seed of splits that are made; apart from --seed, so that all runs test on the same ones."""
    keep_leaks: bool = False
    """Keep training documents that also stand in validation or test; they are removed if not."""

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
                sizes={
                    "train": self.train_size,
                    "validation": self.validation_size,
                    "test": self.test_size,
                },
                split_seed=self.split_seed,
                keep_leaks=self.keep_leaks,
            )
