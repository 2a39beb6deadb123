"""What the report keeps of a claim that was measured, or that could not be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolkit.claims.claim import Claim, Finding, Verdict
from toolkit.report.block_values import from_values, to_values
from toolkit.report.blocks import Block, Details, DrawnPicture, Figure, Section


@dataclass(frozen=True)
class Measured:
    """A claim as it was when it was measured, and what came of it.

    Attributes:
        finding: None where the measurement ended with an error.
        error: that error in words.
        seconds: the measurement took.
        command: makes it again.
        environment: as `toolkit.environment.describe_environment` gives it.
    """

    number: int
    name: str
    statement: str
    source: str
    test: str
    finding: Finding | None
    error: str | None
    seed: int
    quick: bool
    seconds: float
    command: str
    environment: Mapping[str, Any]

    @classmethod
    def of(cls, claim: Claim, outcome: Finding | str, **circumstances: Any) -> Measured:
        """A claim with its finding, or the error in words."""
        finding = None if isinstance(outcome, str) else with_own_pictures(outcome, claim.name)
        return cls(
            claim.number, claim.name, claim.statement, claim.source, claim.test,
            finding, outcome if isinstance(outcome, str) else None, **circumstances,
        )  # fmt: skip

    @property
    def verdict(self) -> str:
        """In words."""
        return "not measured: error" if self.finding is None else self.finding.verdict.value

    @property
    def number_in_words(self) -> str:
        """What the table of verdicts says of it."""
        if self.finding is None:
            return str(self.error)
        return self.finding.number or self.finding.sentence

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; pictures are in files of their own."""
        kept = {name: value for name, value in vars(self).items() if name != "finding"}
        if (found := self.finding) is None:
            return {**kept, "finding": None}
        finding = {
            "verdict": found.verdict.name.lower(),
            "verdict_in_words": found.verdict.value,
            "sentence": found.sentence,
            "number": found.number,
            "setting": dict(found.setting),
            "data": dict(found.data),
            "blocks": to_values(found.blocks),
        }
        return {**kept, "environment": dict(self.environment), "finding": finding}

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], picture: Callable[[str], DrawnPicture]
    ) -> Measured:
        """What `to_dict` gave.

        Args:
            picture: the picture of a figure by its name.

        Raises:
            ValueError, KeyError, TypeError: the values are not those.
        """
        found = values["finding"]
        finding = None
        if found is not None:
            finding = Finding(
                verdict=Verdict[found["verdict"].upper()],
                sentence=found["sentence"],
                setting=found["setting"],
                blocks=from_values(found["blocks"], picture),
                data=found["data"],
                number=found["number"],
            )
        return cls(**{**values, "finding": finding})


def with_own_pictures(finding: Finding, name: str) -> Finding:
    """The finding with figures that no other claim's are called like."""
    return replace(finding, blocks=[_renamed(block, name) for block in finding.blocks])


def _renamed(block: Block, name: str) -> Block:
    if isinstance(block, Section | Details):
        return replace(block, blocks=[_renamed(one, name) for one in block.blocks])
    if isinstance(block, Figure) and not block.name.startswith(name):
        return replace(block, name=f"{name}_{block.name}")
    return block
