"""Where a tokenizer puts its special tokens in a pair of texts, to build pairs from token ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class PairLayout:
    """Ids of the special tokens around and between two texts: [CLS] A [SEP] B [SEP] for BERT."""

    before: list[int]
    between: list[int]
    after: list[int]

    @property
    def special_tokens(self) -> int:
        """How many there are."""
        return len(self.before) + len(self.between) + len(self.after)

    def join(self, first: list[int], second: list[int]) -> list[int]:
        """The ids of a pair."""
        return [*self.before, *first, *self.between, *second, *self.after]

    def starts(self, first: list[int]) -> tuple[int, int]:
        """The places where the two texts begin."""
        return len(self.before), len(self.before) + len(first) + len(self.between)


def pair_layout(tokenizer: PreTrainedTokenizerBase, text: str) -> PairLayout:
    """The layout of a tokenizer, read off the pair that it makes of a text and itself.

    Args:
        text: any text of which the tokenizer makes at least one token.
    """
    alone = list(tokenizer(text, add_special_tokens=False)["input_ids"])
    pair = list(tokenizer(text, text)["input_ids"])
    first = _find(alone, pair, 0)
    second = _find(alone, pair, first + len(alone))
    return PairLayout(
        before=pair[:first],
        between=pair[first + len(alone) : second],
        after=pair[second + len(alone) :],
    )


def _find(part: list[int], whole: list[int], start: int) -> int:
    places = range(start, len(whole) - len(part) + 1)
    return next(i for i in places if whole[i : i + len(part)] == part)
