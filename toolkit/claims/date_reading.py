"""A task in which different things must be looked for at once: English dates as eight digits.

"Saturday, November 22, 2064" is read as 20641122: year, month and day stand in different places, in
different forms. The phrases are those of `demo:dates`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertConfig

from scratch_models import ScratchBertForTokenClassification
from toolkit.claims.short_training import right_answers
from toolkit.demo.dates import read_dates

DIGITS = 8
_CHINESE_DATE = re.compile(r"(\d+)年(\d+)月(\d+)日")
_PADDING = 0


@dataclass(frozen=True)
class Dates:
    """Phrases as numbers.

    Attributes:
        ids: [phrases, 8 + longest]: eight places where the digits are said, then the characters,
            then 0.
        digits: [phrases, 8], year, month and day with leading zeros.
        vocabulary: how many different ids there are.
    """

    ids: Tensor
    digits: Tensor
    vocabulary: int

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Tensor | slice) -> Dates:
        return Dates(self.ids[rows], self.digits[rows], self.vocabulary)


def digits_of(chinese: str) -> str:
    """ "2064年11月22日星期六" -> "20641122".

    Raises:
        ValueError: it is no date.
    """
    if not (found := _CHINESE_DATE.match(chinese)):
        raise ValueError(f"no Chinese date: {chinese!r}")
    year, month, day = map(int, found.groups())
    return f"{year:04d}{month:02d}{day:02d}"


def read_phrases() -> list[tuple[str, str]]:
    """Every date of `demo:dates` in English, and its digits.

    Raises:
        UserError: Babel is not installed.
    """
    pairs = read_dates("zh")
    return [
        (source, digits_of(target))
        for source, target, kind in zip(pairs.sources, pairs.targets, pairs.kinds, strict=True)
        if kind.startswith("date-")
    ]


def encode(phrases: list[tuple[str, str]]) -> Dates:
    """Phrases and digits as numbers; the vocabulary is that of these phrases."""
    characters = sorted({character for phrase, _ in phrases for character in phrase})
    first = 1 + DIGITS  # 0 is padding, 1 to 8 ask for a digit
    number = {character: first + place for place, character in enumerate(characters)}
    longest = max(len(phrase) for phrase, _ in phrases)
    ids = torch.full((len(phrases), DIGITS + longest), _PADDING)
    ids[:, :DIGITS] = torch.arange(1, first)
    for row, (phrase, _) in enumerate(phrases):
        ids[row, DIGITS : DIGITS + len(phrase)] = torch.tensor([number[c] for c in phrase])
    digits = torch.tensor([[int(digit) for digit in said] for _, said in phrases])
    return Dates(ids, digits, first + len(characters))


def split(dates: Dates, test: int, seed: int) -> tuple[Dates, Dates]:
    """Training and test phrases; no day of the test stands in the training in another form."""
    days = dates.digits @ 10 ** torch.arange(DIGITS).flip(0)
    distinct = np.random.default_rng(seed).permutation(days.unique().numpy())
    order = {int(day): place for place, day in enumerate(distinct)}
    places = torch.tensor([order[int(day)] for day in days])
    rows = places.argsort(stable=True)
    bound = int((places[rows] <= places[rows[test - 1]]).sum())  # whole days
    return dates[rows[bound:]], dates[rows[:bound]]


class Reader(nn.Module):
    """A BERT with random weights that says a digit at each of the first eight places.

    Args:
        dates: what it will read: their vocabulary and length.
    """

    def __init__(self, dates: Dates, layers: int, width: int, heads: int) -> None:
        super().__init__()
        config = BertConfig(
            vocab_size=dates.vocabulary, hidden_size=width, num_hidden_layers=layers,
            num_attention_heads=heads, intermediate_size=4 * width,
            max_position_embeddings=dates.ids.shape[1], num_labels=10, hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0, pad_token_id=_PADDING,
        )  # fmt: skip
        self.bert = ScratchBertForTokenClassification(config)
        self.bert.set_packing("off")

    def forward(self, ids: Tensor) -> Tensor:
        """[batch, length] -> logits [batch, 8, 10]."""
        logits: Tensor = self.bert(input_ids=ids, attention_mask=mask_of(ids)).logits
        return logits[:, :DIGITS]


def mask_of(ids: Tensor) -> Tensor:
    """[batch, length], 0 at padding."""
    return (ids != _PADDING).long()


def accuracy(model: nn.Module, dates: Dates) -> float:
    """Share of phrases all eight digits of which are right."""
    return float(right_answers(model, dates.ids, dates.digits, 512).all(dim=1).float().mean())
