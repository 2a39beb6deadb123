"""May these methods be compared, and what must a reader mind?"""

from __future__ import annotations

from typing import Any

from toolkit.comparison.cautions import is_outside
from toolkit.comparison.compare import Comparison
from toolkit.comparison.methods import settings
from toolkit.comparison.saved_run import SavedRun
from toolkit.report import wording
from toolkit.report.blocks import Block, Bullets, Details, Paragraph, Section, Table
from toolkit.report.content import Report


def section(report: Report) -> Section:
    """Same examples, same measure, same budget; then the cautions."""
    comparison = report.comparison
    blocks: list[Block] = [Bullets(statements(report))]
    blocks += [Paragraph(caution, tone="note") for caution in comparison.cautions]
    if table := _other_settings(report):
        blocks.append(Details("Settings that differ", [table]))
    return Section("What was compared", blocks)


def _other_settings(report: Report) -> Table | None:
    """Settings in which the methods differ, one row each; None where there are none."""
    found = differing_settings(report.comparison)
    if not found:
        return None
    rows = report.comparison.rows
    return Table(
        ["setting", *(row.title for row in rows)],
        [
            [name, *(str(values.get(row.title, wording.MISSING)) for row in rows)]
            for name, values in found.items()
        ],
    )


def differing_settings(comparison: Comparison) -> dict[str, dict[str, Any]]:
    """Settings in which the methods differ, by name, then by method; of those that have them.

    First those of which methods have different values, then those that only some methods have.
    """
    found = {row.title: _used_settings(row.run) for row in comparison.rows}
    names = dict.fromkeys(name for one in found.values() for name in one)
    differing = {
        name: {title: one[name] for title, one in found.items() if name in one}
        for name in names
        if len({str(one.get(name)) for one in found.values()}) > 1
    }
    alike = {name: len(set(map(str, values.values()))) == 1 for name, values in differing.items()}
    return {name: differing[name] for name in sorted(differing, key=lambda name: alike[name])}


def _used_settings(run: SavedRun) -> dict[str, Any]:
    """Without those of training by steps where a logistic regression was fitted instead."""
    fitted = run.section("training").get("penalty") is not None
    return {
        name: value
        for name, value in settings(run, "seed").items()
        if not (fitted and name.startswith("train."))
    }


def statements(report: Report) -> list[str]:
    """What all runs have in common."""
    comparison = report.comparison
    lines = [_same_examples(report), *comparison.view.facts]
    if comparison.view.chance is not None:
        name, reached = comparison.view.chance
        lines.append(
            f"{wording.capitalised(name)} would score {wording.value(comparison.primary, reached)}."
        )
    budgets = {run.max_seconds for run in comparison.runs}
    if len(budgets) == 1 and (budget := budgets.pop()) is not None:
        lines.append(
            f"All runs had the same budget of {budget:,g} seconds of training (evaluations do not "
            "count); how many steps that is depends on model and machine."
        )
    if not comparison.several_seeds:
        lines.append(
            "One training run per method: the intervals tell how much another test set would "
            "change the numbers, not how much another seed would."
        )
    own = [run for run in comparison.runs if not is_outside(run)]
    selections = {run.section("training").get("selection") for run in own}
    if len(selections) == 1 and (selection := selections.pop()):
        tested = " and was tested once" if comparison.runs[0].split == "test" else ""
        lines.append(f"Every run kept the model of the {wording.metric(selection)}{tested}.")
    return lines


def _same_examples(report: Report) -> str:
    comparison = report.comparison
    split = comparison.runs[0].split
    if comparison.forced:
        return f"Compared on the {comparison.n:,} {split} examples that all runs share."
    checked = ["ids", "labels" if comparison.view.classes else "truth"]
    if comparison.aligned.inputs is not None:
        checked.append("texts")
    own = [run for run in comparison.runs if not is_outside(run)]
    if all(run.data_hash(split) for run in own):
        checked.append("content hash")
    where = "tested" if split == "test" else f"measured ({split}, there is no test set)"
    runs = "All runs were" if len(own) == len(comparison.runs) else "The runs of the toolkit were"
    return (
        f"{runs} {where} on the same {comparison.n:,} examples (same "
        f"{wording.listed(checked)}) and measured in the same way."
    )
