"""What tests of claims share."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from toolkit.claims.claim import Claim, Finding, Measuring, Verdict
from toolkit.report.blocks import figures_of

QuickFinding = Callable[[Claim], Finding]


@pytest.fixture
def quick_finding() -> QuickFinding:
    """Measure a claim in its quick mode, and look at what every finding has to have."""

    def measure(claim: Claim) -> Finding:
        shares: list[float] = []
        finding = claim.measure(Measuring(0, True, lambda share, words: shares.append(share)))
        assert isinstance(finding.verdict, Verdict)
        assert finding.sentence
        assert finding.number
        assert finding.setting
        json.dumps(finding.data, allow_nan=False)
        assert shares == sorted(shares)
        assert shares[0] >= 0.0
        assert 0.99 < shares[-1] <= 1.0 + 1e-9
        for figure in figures_of(finding.blocks):
            figure.draw()
        return finding

    return measure
