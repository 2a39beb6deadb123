"""Where questions come from: the settings of a question answering recipe's data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from toolkit.data.question_answering import QuestionData


@dataclass
class QuestionDataConfig:
    """Questions, the texts that answer them, and the answers, in three splits."""

    dataset: str = "demo:questions"
    """demo:questions, file in SQuAD's form (also .gz), table (json, jsonl, parquet, csv) with
    question, context and answers, folder of splits, or Hub name."""
    encoding: str | None = None
    """Encoding of text files, such as big5; null: told from the bytes (UTF-8, UTF-16 with its mark,
    GB18030)."""
    validation_file: str | None = None
    """File with the validation questions; null: the data set's own, or a share of the training
    ones."""
    test_file: str | None = None
    """File with the test questions; null: the data set's own, or a share of the training ones."""
    language: Literal["auto", "zh", "en"] = "auto"
    """How answers are compared: zh as CMRC2018 does, en as SQuAD does; auto: by the characters of
    the training questions."""
    train_size: int | None = None
    """Train on so many questions only; a smaller number is part of a larger one."""
    validation_size: int | None = None
    """Validation questions to use; null: all, or a tenth where they are split off."""
    test_size: int | None = None
    """Test questions to use; null: all, or a tenth where they are split off."""
    split_seed: int = 0
    """Seed of splits that are made (by context: no context stands in two of them)."""
    keep_leaks: bool = False
    """Keep training questions that, with their context, also stand in validation or test."""

    def load_data(self) -> "QuestionData":
        """Read, check and split the questions.

        Raises:
            UserError: whatever is wrong with them, with file and question.
        """
        from toolkit.data.encoding import text_encoding
        from toolkit.data.question_answering import load_questions

        with text_encoding(self.encoding):
            return load_questions(
                self.dataset,
                validation_file=self.validation_file,
                test_file=self.test_file,
                language=self.language,
                sizes={
                    "train": self.train_size,
                    "validation": self.validation_size,
                    "test": self.test_size,
                },
                split_seed=self.split_seed,
                keep_leaks=self.keep_leaks,
            )
