"""The report of a set of benchmarks: a chart of the ratios, and a table for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure as Picture

from toolkit.bench.record import BenchResult
from toolkit.bench.settings import BenchSettings
from toolkit.bench.suite import Found
from toolkit.bench.table import agreement_line, machine, profile_line, rows_of
from toolkit.plots import Bar, forest_plot
from toolkit.report.blocks import (
    Block,
    Bullets,
    Cell,
    Code,
    Document,
    Figure,
    Paragraph,
    Section,
    Table,
)
from toolkit.report.files import write_document


def write_report(found: Found, folder: str | Path, settings: BenchSettings, command: str) -> Path:
    """Write report.html, report.md, report.json and the chart; returns the path of report.html.

    Args:
        command: makes the report again.

    Raises:
        UserError: the folder cannot be written.
    """
    data = {"schema_version": 1, "command": command, "benchmarks": found.to_list()}
    markdown = write_document(as_document(found, settings, command), folder, data)
    return markdown.with_name("report.html")


def as_document(found: Found, settings: BenchSettings, command: str) -> Document:
    """Verdict, chart, goals, one section a case, and how to make it again."""
    results = found.results
    blocks: list[Block] = [
        Paragraph(verdict(results), "lead"),
        Figure(
            "speed", lambda: ratio_plot(results),
            "How many times as fast ours is as each of the others, by benchmark",
            "Right of 1 ours is faster. Points are medians, lines go from the lowest to the "
            "highest round.",
        ),
        Paragraph(
            f"{machine(results[0].environment, settings.device)}; {settings.precision}; "
            f"{settings.rounds} rounds in turn, in one process, "
            f"{'reference sizes' if settings.full else 'reduced sizes (fewer layers), as stated'}. "
            "Before anything was timed both sides' results were compared. Ratios move with the "
            "share of padding: it stands beside each."
        ),
        Section("Goals", [Bullets(goal_lines(results))]),
        *(_section(result) for result in results),
    ]  # fmt: skip
    if found.problems:
        lines = [f"{name}: {why}" for name, why in found.problems.items()]
        blocks.append(Section("Not measured", [Bullets(lines)]))
    blocks.append(Section("Again", [Code(command)]))
    return Document("Speed against HuggingFace", blocks=blocks)


def verdict(results: Sequence[BenchResult]) -> str:
    """The range of the ratios, and how many goals were reached."""
    ratios = [
        (spread.median, result.name, other)
        for result in results
        for other, spread in result.times_as_fast.items()
    ]
    low, high = min(ratios), max(ratios)
    goals = sum(len(r.goals) + (r.memory_goal is not None) for r in results)
    missed = sum(len(result.missed) for result in results)
    return (
        f"Ours is between {low[0]:.2f} ({low[1]}, against {low[2]}) and {high[0]:.2f} times "
        f"({high[1]}, against {high[2]}) as fast; {goals - missed} of {goals} goals are reached."
    )


def goal_lines(results: Sequence[BenchResult]) -> list[str]:
    """Every goal, what was reached and, where it was missed, where the time goes."""
    lines = []
    for result in results:
        for other, goal in result.goals.items():
            reached = result.times_as_fast[other].median
            line = f"{result.name}, against {other}: {reached:.3g} (goal {goal:g})"
            lines.append(f"{line}, missed. {profile_line(result)}" if reached < goal else line)
        if result.memory_goal is not None and result.memory_share is not None:
            share, goal = result.memory_share, result.memory_goal
            line = f"{result.name}: {share:.0%} of the memory (goal {goal:.0%})"
            lines.append(f"{line}, missed" if share > goal else line)
    return lines


def ratio_plot(results: Sequence[BenchResult]) -> Picture:
    """One row a case and opponent."""
    bars = []
    for result in results:
        for other, spread in result.times_as_fast.items():
            name = result.name if len(result.times_as_fast) == 1 else f"{result.name} / {other}"
            bars.append(Bar(name, spread.median, spread.lowest, spread.highest))
    return forest_plot(
        bars, "times as fast", lambda value: f"{value:.2f}", interval_name="lowest to highest"
    )


def _section(result: BenchResult) -> Section:
    header = ["program", "seconds", f"{result.unit}/s", "padded", "limit", "memory", "ours"]
    blocks: list[Block] = [
        Paragraph(result.task),
        Table(
            header,
            [
                [Cell(text, detail=detail or None) for text, detail in row]
                for row in rows_of(result)
            ],
            numeric=range(1, len(header)),
        ),
        Paragraph(
            f"{agreement_line(result)} padded: computed, per real one. limit: the least time for "
            "its products here, without padding (or for reading its weights). memory: the "
            "largest of a process of its own.",
            "caption",
        ),
    ]
    if result.note:
        blocks.append(Paragraph(result.note, "note"))
    blocks.append(Paragraph(profile_line(result)))
    return Section(result.name, blocks)
