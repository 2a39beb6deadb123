"""What a report says, apart from how it is laid out: every format is written from this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.comparison.compare import Comparison
from toolkit.comparison.targets import Targets, targets
from toolkit.comparison.twins import Twins, find_twins
from toolkit.report.examples import ExampleGroup, group_examples
from toolkit.report.facts import Fact, data_facts, machine_facts, report_facts
from toolkit.report.published import PublishedDistance, published_distances
from toolkit.report.thumbnails import Thumbnails, thumbnails
from toolkit.report.verdict import Verdict, verdict


@dataclass(frozen=True)
class Report:
    """A comparison with its verdict in words, the examples drawn and the facts to repeat it.

    `missing` are sentences about runs that failed, `note` what its maker wants to be known.
    `examples` is None when they were left out or never recorded; `examples_left_out` says why.
    `thumbnails` are the pictures of examples that are images.
    `targets` is None where no run logged what they need. `command` makes the report again, where it
    is known.
    """

    title: str
    comparison: Comparison
    verdict: Verdict
    missing: list[str]
    note: str | None
    targets: Targets | None
    twins: list[Twins]
    examples: list[ExampleGroup] | None
    examples_left_out: str | None
    thumbnails: Thumbnails
    published: list[PublishedDistance]
    data_facts: list[Fact]
    machine_facts: list[Fact]
    report_facts: list[Fact]
    command: str | None


def build_report(
    comparison: Comparison,
    title: str = "Comparison",
    show_examples: bool = True,
    command: str | None = None,
    missing: Sequence[str] = (),
    note: str | None = None,
) -> Report:
    """Put a comparison into words and draw its examples."""
    examples, left_out = None, None
    twins = find_twins(comparison)
    noun = comparison.view.noun
    if not show_examples:
        left_out = f"The test {noun} are left out of this report on request."
    elif comparison.aligned.inputs is None and comparison.aligned.images is None:
        left_out = f"The runs recorded no test {noun}."
    else:
        examples = group_examples(comparison)
    return Report(
        title=title,
        comparison=comparison,
        verdict=verdict(comparison, twins),
        missing=list(missing),
        note=note,
        targets=targets(comparison),
        twins=twins,
        examples=examples,
        examples_left_out=left_out,
        thumbnails=_thumbnails(comparison, examples),
        published=published_distances(comparison),
        data_facts=data_facts(comparison),
        machine_facts=machine_facts(comparison),
        report_facts=report_facts(),
        command=command,
    )


def _thumbnails(comparison: Comparison, examples: list[ExampleGroup] | None) -> Thumbnails:
    """Of the examples that are shown, where they are images."""
    if examples is None or comparison.aligned.inputs is not None:
        return Thumbnails({}, None)
    ids = [example.id for group in examples for example in group.examples]
    return thumbnails(comparison, list(dict.fromkeys(ids)))
