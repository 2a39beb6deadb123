"""Where questions come from: the settings of a question answering recipe's data."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from toolkit.data.split_config import SplitConfig

if TYPE_CHECKING:
    from toolkit.data.question_answering import QuestionData


@dataclass
class QuestionDataConfig(SplitConfig):
    """Questions, the texts that answer them, and the answers, in three splits."""

    dataset: str = "demo:questions"
    """demo:questions, file in SQuAD's form (also .gz), table (json, jsonl, parquet, csv) with
    question, context and answers, folder of splits, or Hub name."""
    validation_file: str | None = None
    """File with the validation questions; null: the data set's own, or a share of the training
    ones."""
    test_file: str | None = None
    """File with the test questions; null: the data set's own, or a share of the training ones."""
    language: Literal["auto", "zh", "en"] = "auto"
    """How answers are compared: zh as CMRC2018 does, en as SQuAD does; auto: by the characters of
    the training questions."""

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
                sizes=self.sizes,
                split_seed=self.split_seed,
                keep_leaks=self.keep_leaks,
            )
