"""Which claims there are. A claim's module is imported when the claim is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from toolkit.claims.claim import Claim
from toolkit.errors import UserError

MODULES = {
    1: "scaling",
    2: "permutation",
    3: "extrapolation",
    4: "recall",
    5: "parallel",
    6: "quadratic",
    7: "heads",
    8: "depth",
    9: "small_data",
    10: "small_images",
}
"""Module of `toolkit.claims` by number; each has a `CLAIM`."""


def load(number: int) -> Claim:
    """The claim of a number."""
    claim: Claim = importlib.import_module(f"toolkit.claims.{MODULES[number]}").CLAIM
    return claim


def chosen(words: Iterable[str]) -> list[int]:
    """Numbers in order, each once; all of them without a word.

    Raises:
        UserError: a word that is no claim's number.
    """
    words = list(words)
    for word in words:
        if not word.isascii() or not word.isdigit() or int(word) not in MODULES:
            raise UserError(
                f"no claim {word!r}: they are numbered {min(MODULES)} to {max(MODULES)}; "
                "toolkit claims --list shows them."
            )
    return sorted({int(word) for word in words} or MODULES)
