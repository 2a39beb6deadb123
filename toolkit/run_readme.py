"""The README of a run directory: the frame that the runs of all tasks share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Findings:
    """What a run is and came to, in Markdown; its model card says it with the same words.

    Args:
        about: what was trained on what, a paragraph.
        results: lines: the table of results, and what belongs to it.
    """

    about: str
    results: list[str]


def run_readme(
    summary: dict[str, Any],
    findings: Findings,
    *,
    use: str,
    predictions: str = "every answer",
) -> str:
    """A page about a run, for whoever opens its folder.

    Args:
        summary: schema version 1, as in ``summary.json``.
        findings: of the task's own module.
        use: Python that uses ``model/``, started in the run directory.
        predictions: what ``predictions/`` holds.
    """
    once = " The test set was used once." if "test" in summary else ""
    files = (
        "config.yaml holds every setting, environment.json versions and hardware, data.json\n"
        f"what was read, dropped and split, predictions/ {predictions}"
    )
    return "\n".join(
        [
            f"# {summary['title']}",
            "",
            findings.about,
            "",
            *findings.results,
            "",
            f"Chosen by: {summary['training']['selection']}.{once}",
            "",
            "## Use it (in this folder)",
            "",
            "```python",
            use.strip(),
            "```",
            "",
            "## Make it again",
            "",
            f"    {summary['command']}",
            "",
            f"{files}.",
            "",
        ]
    )


def how_trained(model: dict[str, Any], data: str, steps: int) -> str:
    """A clause about a model of a language: its class and name, and what it was trained on.

    Args:
        model: the section of the summary.
        data: the examples, with their number and source.
        steps: 0 for a model that was measured as it is.
    """
    named = f"{model['architecture']} ({model['name']}, method {model['method']})"
    if steps == 0:
        return f"{named}, as it is: not trained on {data}"
    return f"{named}, trained on {data} in {steps:,} steps"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table; a bar in a cell, which would end it, is written as its entity."""
    lines = [header, ["---"] * len(header), *rows]
    return [
        "| " + " | ".join(cell.replace("|", "&#124;") for cell in line) + " |" for line in lines
    ]


def signatures(metrics: Iterable[dict[str, Any]]) -> list[str]:
    """One line for each metric of a split: how it was measured."""
    return [f"`{metric['signature']}`  " for metric in metrics]
