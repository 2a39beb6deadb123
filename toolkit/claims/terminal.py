"""Claims and verdicts as text in a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from toolkit.claims.claim import Claim
from toolkit.claims.record import Measured
from toolkit.report import wording


def print_measured(one: Measured, console: Console) -> None:
    """One claim with its verdict, in two or three lines."""
    console.print(f"[bold]{one.number}. {escape(one.statement)}[/bold]")
    result = str(one.error) if one.finding is None else one.finding.sentence
    verdict = wording.capitalised(one.verdict)
    took = wording.seconds(one.seconds)
    line = f"[bold]{escape(verdict)}[/bold] ({took}): {escape(result)}"
    console.print(Padding(line, (0, 0, 0, 3)))


def print_claims(claims: Iterable[Claim], console: Console) -> None:
    """What can be measured, and by which rule it will be decided."""
    for claim in claims:
        console.print(f"[bold]{claim.number}. {escape(claim.statement)}[/bold]")
        for line in (f"Source: {claim.source}", f"Decided by: {claim.test}"):
            console.print(Padding(escape(line), (0, 0, 0, 3)))


def claim_values(claim: Claim) -> dict[str, object]:
    """A claim as JSON values."""
    return {
        "number": claim.number,
        "name": claim.name,
        "statement": claim.statement,
        "source": claim.source,
        "test": claim.test,
    }
