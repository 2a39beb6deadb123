"""Sizes in words."""

from __future__ import annotations

import pytest

from toolkit.units import size


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0.0 MiB"), (52_429, "0.1 MiB"), (5 * 2**20, "5.0 MiB"), (50 * 2**20, "50 MiB"),
     (2**30 - 2**20, "1023 MiB"), (1.5 * 2**30, "1.50 GiB"), (2**40, "1024.00 GiB")],
)  # fmt: skip
def test_size(number: float, words: str) -> None:
    assert size(number) == words
