"""Texts as a model reads them: its tokens, what is cut, what its tokenizer does not know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.data.tokenization import UNKNOWN_SHARE_TO_WARN, input_limit, tokenize

if TYPE_CHECKING:
    from toolkit.data.image_decoding import Size
    from toolkit.data.inspection.tasks import Task

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Tokens:
    """Tokens of one column of a split."""

    ids: Sequence[Sequence[int]]  # of every row, as cut; of a row in windows those of the first
    limit: int
    longest: int  # tokens before cutting; of rows in windows the longest window
    cut: int  # rows
    total: int
    unknown: int
    in_windows: bool = False  # rows longer than the limit are read in windows, nothing is lost

    @property
    def unknown_share(self) -> float:
        """Share of the tokens that are the unknown one."""
        return self.unknown / self.total if self.total else 0.0

    @property
    def many_unknown(self) -> bool:
        """More than any text of the model's language has."""
        return self.unknown_share > UNKNOWN_SHARE_TO_WARN


TokensOf = dict[str, dict[str, Tokens]]
"""By split and column."""


class Tokenizing:
    """The tokenizer (of an image model the preprocessing) that data are read for.

    Args:
        name: model folder, `demo:` name or Hub name.
        max_length: tokens of a row; None: those of the task's recipe.
    """

    def __init__(self, name: str, max_length: int | None) -> None:
        self.name, self.max_length = name, max_length
        self.tokenizer: Any = None
        self.limit = 0
        self.image_size: Size | None = None

    def prepare(self, task: Task) -> None:
        """Load what the task needs.

        Raises:
            UserError: no such model, or a length that leaves no room.
        """
        if task.max_length is None:
            from toolkit.image_modeling import load_preprocessing

            self.image_size = load_preprocessing(self.name).size
            return
        from toolkit.modeling import load_tokenizer, read_config

        self.tokenizer = load_tokenizer(self.name)
        asked = self.max_length or task.max_length
        self.limit = input_limit(asked, self.tokenizer, read_config(self.name))

    def tokenize(self, data: Any, task: Task) -> tuple[Any, TokensOf]:
        """The data with the summary a recipe writes, and the tokens by split and column.

        Raises:
            UserError: the tokenizer cannot be used for the task.
        """
        return _TOKENIZERS[task.name](data, self, task)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Tokens as text."""
        return list(self.tokenizer.convert_ids_to_tokens(list(ids)))


def _tokenize_texts(data: Any, model: Tokenizing, task: Task) -> tuple[Any, TokensOf]:
    data = tokenize(data, model.tokenizer, model.limit)
    said = data.summary["tokenization"]
    return data, {
        split: {
            "text": Tokens(
                getattr(data, split)["input_ids"][:],
                said["max_length"],
                count["longest_text"],
                count["rows_cut"],
                count["tokens"],
                count["unknown_tokens"],
            )
        }
        for split, count in said["splits"].items()
    }


def _tokenize_pairs(data: Any, model: Tokenizing, task: Task) -> tuple[Any, TokensOf]:
    from toolkit.data.translation_tokens import tokenize_pairs

    data = tokenize_pairs(data, model.tokenizer, model.limit)
    found: TokensOf = {}
    for split, sides in data.summary["tokenization"]["splits"].items():
        rows, found[split] = getattr(data, split), {}
        for side, column in (("source", "input_ids"), ("target", "labels")):
            count, ids = sides[side], rows[column][:]
            found[split][side] = Tokens(
                ids,
                model.limit,
                count["longest_text"],
                count["rows_cut"],
                count["tokens"],
                _count(ids, model.tokenizer.unk_token_id),
            )
    return data, found


def _tokenize_words(data: Any, model: Tokenizing, task: Task) -> tuple[Any, TokensOf]:
    from toolkit.data.word_windows import tokenize_words

    data, windows = tokenize_words(data, model.tokenizer, model.limit, _overlap(model, task))
    return data, _of_windows(data, windows, model, "sentence", "sentences_in_windows")


def _tokenize_questions(data: Any, model: Tokenizing, task: Task) -> tuple[Any, TokensOf]:
    from toolkit.data.answer_windows import tokenize_questions

    overlap = _overlap(model, task)
    question = min(64, max(model.limit // 4, 1))
    data, windows = tokenize_questions(
        data, model.tokenizer, model.limit, overlap=overlap, max_question=question
    )
    return data, _of_windows(data, windows, model, "question", "questions_in_windows")


def _overlap(model: Tokenizing, task: Task) -> int:
    """That of the recipe, or less where windows are shorter than it expects."""
    return min(task.overlap or 0, model.limit // 4)


def _of_windows(data: Any, windows: Any, model: Tokenizing, row: str, several: str) -> TokensOf:
    found: TokensOf = {}
    for split, count in data.summary["tokenization"]["splits"].items():
        made = getattr(windows, split)
        first: dict[int, Sequence[int]] = {}
        for number, ids in zip(made[row][:], made["input_ids"][:], strict=True):
            first.setdefault(number, ids)
        found[split] = {
            row: Tokens(
                [first[number] for number in sorted(first)],
                model.limit,
                max(made["length"][:]),
                count[several],
                count["tokens"],
                count["unknown_tokens"],
                in_windows=True,
            )
        }
    return found


def _tokenize_documents(data: Any, model: Tokenizing, task: Task) -> tuple[Any, TokensOf]:
    found: TokensOf = {}
    for split in SPLITS:
        encoded = model.tokenizer(
            getattr(data, split)["text"][:],
            add_special_tokens=False,
            return_attention_mask=False,
            verbose=False,
        )
        ids = encoded["input_ids"]
        lengths = list(map(len, ids))
        unknown = _count(ids, model.tokenizer.unk_token_id)
        longer = sum(length > model.limit for length in lengths)
        found[split] = {
            "text": Tokens(ids, model.limit, max(lengths), longer, sum(lengths), unknown, True)
        }
    return data, found


def _count(ids: Sequence[Sequence[int]], token: int | None) -> int:
    return sum(row.count(token) for row in map(list, ids)) if token is not None else 0


_TOKENIZERS: dict[str, Callable[[Any, Tokenizing, Any], tuple[Any, TokensOf]]] = {
    "text-classification": _tokenize_texts,
    "token-classification": _tokenize_words,
    "translation": _tokenize_pairs,
    "question-answering": _tokenize_questions,
    "language-modeling": _tokenize_documents,
}
