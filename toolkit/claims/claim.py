"""What a claim is, how it is measured, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from toolkit.report.blocks import Block


class Verdict(Enum):
    """What a measurement says about a claim. It speaks of the setting measured, no more."""

    HOLDS = "holds here"
    PARTLY = "holds here in part"
    FAILS = "does not hold here"
    UNDECIDED = "cannot be told here"


@dataclass(frozen=True)
class Finding:
    """What was measured for one claim.

    Attributes:
        sentence: the result in words with its numbers and intervals, one or two sentences.
        setting: sizes, lengths, seeds, budget: all it takes to judge what the result is worth.
        blocks: the plot, the table and what else the report shows.
        data: the numbers behind it, as JSON values without NaN.
        number: what a reader should keep, in a few words, for the table of verdicts, such as
            "exponent 1.97 [1.95, 1.99]"; empty: the sentence stands there.
    """

    verdict: Verdict
    sentence: str
    setting: Mapping[str, str]
    blocks: Sequence[Block]
    data: Mapping[str, Any]
    number: str = ""


@dataclass(frozen=True)
class Measuring:
    """What a measurement is given.

    Attributes:
        seed: everything random in it follows from this number.
        quick: tiny sizes, to see within seconds that it works; its verdict is worth nothing.
        advance: called with the share that is done (0 to 1) and a few words on what comes next.
    """

    seed: int
    quick: bool
    advance: Callable[[float, str], None]

    def seed_of(self, number: int) -> int:
        """Seed of a training run or draw by its number, below 1000; no other `seed` shares it."""
        return 1000 * self.seed + number


@dataclass(frozen=True)
class Claim:
    """A sentence of the chapter that can be measured.

    Attributes:
        name: of its files, such as "scaling".
        statement: the claim, as a sentence.
        source: where it comes from (paper and section).
        test: in words, what is measured and what result would speak for and against the claim;
            fixed before measuring.
    """

    number: int
    name: str
    statement: str
    source: str
    test: str
    measure: Callable[[Measuring], Finding]
