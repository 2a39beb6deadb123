"""The words of the report."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from toolkit.claims.claim import Verdict
from toolkit.claims.report import summary


@pytest.mark.parametrize(
    ("holds", "fails", "errors", "expected"),
    [
        (0, 0, 2, "No claim was measured."),
        (1, 0, 1, "1 claim was measured: 1 holds here."),
        (0, 2, 0, "2 claims were measured: 2 do not hold here."),
        (9, 1, 0, "10 claims were measured: 9 hold here and 1 does not hold here."),
        (20, 0, 0, "20 claims were measured: 20 hold here."),
    ],
)
def test_the_summary_counts_what_was_measured(
    holds: int, fails: int, errors: int, expected: str
) -> None:
    verdicts = [Verdict.HOLDS] * holds + [Verdict.FAILS] * fails
    measured: list[Any] = [
        SimpleNamespace(finding=SimpleNamespace(verdict=verdict)) for verdict in verdicts
    ]
    measured += [SimpleNamespace(finding=None)] * errors
    assert summary(measured) == expected
