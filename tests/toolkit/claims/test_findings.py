"""Every claim at its tiny size: a finding whose blocks and data can be written."""

from __future__ import annotations

import json

import pytest

from toolkit.claims import date_reading, heads, registry
from toolkit.claims.claim import Finding, Measuring
from toolkit.claims.record import Measured
from toolkit.plots import figure_as_svg
from toolkit.report.blocks import DrawnPicture, figures_of

FIELDS = {
    1: {"d_k", "keys", "scaled", "plain"},
    2: {"tokens", "tokens_moved", "difference"},
    6: {"lengths", "seconds", "flops", "exponent", "attention_passes_feed_forward_at"},
    7: {"points", "decided_by", "runs"},
    8: {"points", "cells"},
}


def few_phrases() -> list[tuple[str, str]]:
    return [(f"Jan {day}, 19{year}", f"19{year}01{day:02d}") for day in range(1, 21)
            for year in (70, 81, 92)]  # fmt: skip


def measured(number: int, seed: int) -> tuple[Finding, list[float]]:
    shares: list[float] = []
    finding = registry.load(number).measure(
        Measuring(seed, quick=True, advance=lambda share, words: shares.append(share))
    )
    return finding, shares


@pytest.mark.parametrize("number", FIELDS)
def test_quick_findings(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "read_phrases", few_phrases)
    claim = registry.load(number)
    assert claim.number == number
    assert claim.name == registry.MODULES[number]
    finding, shares = measured(number, seed=1)
    assert set(finding.data) >= FIELDS[number]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    assert finding.sentence.endswith(".")
    figures = list(figures_of(finding.blocks))
    assert figures
    for figure in figures:
        picture = figure.draw()
        assert not isinstance(picture, DrawnPicture)
        assert figure_as_svg(picture).count("<svg") == 1
    one = Measured.of(claim, finding, seed=1, quick=True, seconds=0.0, command="", environment={})
    values = json.loads(json.dumps(one.to_dict(), allow_nan=False))
    again = Measured.from_dict(values, lambda name: DrawnPicture(name))
    assert json.loads(json.dumps(again.to_dict())) == values


@pytest.mark.parametrize("number", [1, 2])
def test_the_same_seed_finds_the_same(number: int) -> None:
    first, second, other = (measured(number, seed)[0].data for seed in (1, 1, 2))
    assert first == second
    assert first != other


@pytest.mark.parametrize(("number", "name"), registry.MODULES.items())
def test_claims_stand_under_their_numbers(number: int, name: str) -> None:
    pytest.importorskip(f"toolkit.claims.{name}")
    claim = registry.load(number)
    assert (claim.number, claim.name) == (number, name)
    assert claim.statement[0].isupper()
    assert not claim.statement.endswith(".")
    assert claim.source
    assert claim.test


def test_every_date_of_the_demo_is_read() -> None:
    pytest.importorskip("babel")
    phrases = date_reading.read_phrases()
    assert len(phrases) > 10_000
    said = dict(phrases)
    assert said["Monday, January 1, 1900"] == "19000101"
    assert said["Apr 23, 1977"] == "19770423"
