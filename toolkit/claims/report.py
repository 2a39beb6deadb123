"""The report: a table of verdicts, then a section a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.claims.claim import Verdict
from toolkit.claims.record import Measured
from toolkit.claims.registry import MODULES
from toolkit.report import wording
from toolkit.report.blocks import (
    Block,
    Cell,
    Code,
    Details,
    Document,
    Paragraph,
    Section,
    Table,
)

TITLE = "Claims about Transformers, measured"


def as_document(measured: Sequence[Measured]) -> Document:
    """The whole report of claims in order."""
    return Document(TITLE, blocks=[
        Paragraph(summary(measured), "lead"),
        *_warnings(measured),
        _verdicts(measured),
        Paragraph(
            "A verdict speaks of the setting that was measured. Rules and sizes were settled "
            "beforehand, on trial runs with seed 0. Numbers in brackets are 95% intervals. What it "
            "was measured on: "
            + machine(measured),
        ),
        *(_section(one) for one in measured),
        Section("Again", [Code(again(measured))]),
    ])  # fmt: skip


def again(measured: Sequence[Measured]) -> str:
    """The command that measures all of them again; a line a claim where they were not alike."""
    alike = {one.command.replace(f"claims {one.number}", "claims", 1) for one in measured}
    return "\n".join(alike if len(alike) == 1 else [one.command for one in measured])


def summary(measured: Sequence[Measured]) -> str:
    """How many claims hold, and which do not."""
    found = [one.finding.verdict for one in measured if one.finding is not None]
    counts = [(verdict.value, found.count(verdict)) for verdict in Verdict if verdict in found]
    parts = [_times(count, text) for text, count in counts]
    if not found:
        return "No claim was measured."
    measured_claims = "1 claim was" if len(found) == 1 else f"{len(found)} claims were"
    return f"{measured_claims} measured: {wording.listed(parts)}."


def _times(count: int, verdict: str) -> str:
    """3 of "holds here" -> "3 hold here"; one keeps its words."""
    if count != 1:
        verdict = verdict.replace("holds", "hold").replace("does", "do")
    return f"{count} {verdict}"


def machine(measured: Sequence[Measured]) -> str:
    """Processor, threads and versions; by claim where they are not the same."""
    by_words: dict[str, list[int]] = {}
    for one in measured:
        by_words.setdefault(_machine_of(one.environment), []).append(one.number)
    if len(by_words) == 1:
        return f"{next(iter(by_words))}."
    groups = [
        f"{wording.listed([str(number) for number in numbers])}: {words}"
        for words, numbers in by_words.items()
    ]
    return f"{'; '.join(groups)}."


def _machine_of(environment: Mapping[str, Any]) -> str:
    packages = environment["packages"]
    threads = environment["threads"]
    return (
        f"{environment['processor']}, {threads} thread{'s' * (threads != 1)} of "
        f"{environment['cores']} cores; Python {environment['python']}, PyTorch "
        f"{packages['torch']}, Transformers {packages['transformers']}"
    )


def _warnings(measured: Sequence[Measured]) -> list[Block]:
    found: list[Block] = []
    if any(one.quick for one in measured):
        found.append(
            Paragraph(
                "measured with --quick, at sizes that only show that the measurements work. These "
                "verdicts are worth nothing.",
                "warning",
            )
        )
    for one in measured:
        if one.error is not None:
            found.append(Paragraph(f"claim {one.number} was not measured: {one.error}", "warning"))
    left = [str(number) for number in MODULES if number not in {one.number for one in measured}]
    if left:
        word = "Claim" if len(left) == 1 else "Claims"
        found.append(Paragraph(f"{word} {wording.listed(left)} not measured yet.", "caption"))
    return found


def _verdicts(measured: Sequence[Measured]) -> Table:
    rows: list[list[Cell | str]] = [
        [
            f"{one.number}. {one.statement}",
            Cell(one.verdict, strong=True, detail=one.number_in_words),
        ]
        for one in measured
    ]
    return Table(["claim", "verdict, and number"], rows)


def _section(one: Measured) -> Section:
    blocks: list[Block] = []
    if one.finding is None:
        blocks.append(Paragraph(f"could not be measured: {one.error}", "warning"))
    else:
        blocks.append(
            Paragraph(f"{wording.capitalised(one.verdict)}. {one.finding.sentence}", "lead")
        )
    blocks += [
        Paragraph(f"Source: {one.source}"),
        Paragraph(f"How it was decided: {one.test}"),
        *(() if one.finding is None else one.finding.blocks),
        Details("Setting, and how to measure it again", [_setting(one), Code(one.command)]),
    ]
    return Section(f"{one.number}. {one.statement}", blocks)


def _setting(one: Measured) -> Table:
    environment = one.environment
    git = environment.get("git")
    commit = "not a checkout" if git is None else git["commit"] + " (changed)" * git["dirty"]
    facts = {
        **({} if one.finding is None else one.finding.setting),
        "seed": str(one.seed),
        "time taken": wording.seconds(one.seconds),
        "machine": _machine_of(environment),
        "code": commit,
    }
    return Table(["setting", "value"], [[name, value] for name, value in facts.items()])
