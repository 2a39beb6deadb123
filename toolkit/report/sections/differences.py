"""Where the methods differ: who is right where, by class and length, and examples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolkit.comparison.compare import Comparison
from toolkit.comparison.pairs import Pair
from toolkit.plots import MOST_CLASSES, GroupValues, confusion_matrices, grouped_bars
from toolkit.report import wording
from toolkit.report.blocks import (
    Block,
    Bullets,
    Cell,
    Details,
    Figure,
    Paragraph,
    Quote,
    Section,
    Table,
    Thumbnail,
)
from toolkit.report.confusions import Confusions, confusions
from toolkit.report.content import Report
from toolkit.report.examples import LONGEST_TEXT, Example, ExampleGroup
from toolkit.report.sections.statistics import shown_pairs
from toolkit.task_scores.view import Breakdown

_MOST_COLUMNS = 6  # parts side by side in a table
_MOST_DRAWN = 7  # methods that a picture of parts tells apart
_MOST_PARTS = 30


def section(report: Report) -> Section:
    """Counts, confusion matrices, breakdowns, examples."""
    comparison = report.comparison
    blocks: list[Block] = [*_who_is_right(comparison)]
    if (found := confusions(comparison)) is not None:
        blocks.append(Section("Confusions", [_confusions(comparison, found)], level=3))
    parts = comparison.view.breakdowns
    # One part is the whole test set, whose value stands in the results.
    blocks += [_breakdown(comparison, i) for i, one in enumerate(parts) if len(one.names) > 1]
    blocks.append(Section("Examples", _examples(report), level=3))
    return Section("Where they differ", blocks)


def _who_is_right(comparison: Comparison) -> list[Block]:
    if comparison.view.right is None:
        return _who_is_better(comparison)
    write = wording.one_decimal if comparison.several_seeds else wording.whole
    rows = [
        [
            comparison.rows[pair.first].title,
            comparison.rows[pair.second].title,
            *(write(number) for number in pair.mean_counts or ()),
        ]
        for pair in shown_pairs(comparison)
    ]
    right = comparison.view.right_means or "the predicted class is the true one"
    caption = f"Number of {comparison.view.noun}. Right: {right}."
    if comparison.several_seeds:
        caption += " With several seeds: means over all pairs of a seed of A and one of B; "
        caption += "the examples below are sorted by what most seeds of each answered."
    header = ["A", "B", "both right", "only A right", "only B right", "both wrong"]
    return [Table(header, rows, numeric=range(2, 6)), Paragraph(caption, tone="caption")]


def _who_is_better(comparison: Comparison) -> list[Block]:
    """The same for tasks whose examples are not right or wrong."""
    rows = []
    for pair in shown_pairs(comparison):
        a, b = (comparison.rows[place].title for place in (pair.first, pair.second))
        rows.append([a, b, *map(wording.count, better_counts(comparison, pair))])
    caption = f"Number of {comparison.view.noun}, by {comparison.view.quality_label}."
    header = ["A", "B", "A better", "B better", "equal"]
    return [Table(header, rows, numeric=range(2, 5)), Paragraph(caption, tone="caption")]


def better_counts(comparison: Comparison, pair: Pair) -> tuple[int, int, int]:
    """On how many examples the first did better, the second, neither; means over their seeds."""
    ours, theirs = (
        comparison.view.quality[comparison.rows[place].method.places].mean(axis=0)
        for place in (pair.first, pair.second)
    )
    apart = ours - theirs
    return int((apart > 0).sum()), int((apart < 0).sum()), int((apart == 0).sum())


def _confusions(comparison: Comparison, found: Confusions) -> Block:
    titles = [row.title for row in found.rows]
    summed = comparison.several_seeds
    if (matrices := found.matrices) is None:
        note = "The most frequent confusions" + ", summed over seeds" * summed
        rows = [[one.truth, one.answer, *map(wording.count, one.counts)] for one in found.frequent]
        header = ["truth", "answer", *titles]
        return Table(header, rows, numeric=range(2, len(header)), caption=f"{note}.")
    caption = "Rows are the truth, columns the answers; shade is the share of the row."
    if summed:
        caption += " Counts are summed over seeds."
    if len(titles) < found.of:
        caption += f" The {len(titles)} best methods."
    return Figure(
        "confusion_matrices",
        lambda: confusion_matrices(matrices, titles, found.names),
        alt="Confusion matrices of " + wording.listed(titles),
        caption=caption,
    )


def _breakdown(comparison: Comparison, number: int) -> Section:
    breakdown = comparison.view.breakdowns[number]
    values = np.stack(
        [breakdown.values[:, row.method.places].mean(axis=1) for row in comparison.rows]
    )  # [methods, parts]
    caption = f"{wording.capitalised(breakdown.label)}. {breakdown.note}"
    if len(breakdown.names) > _MOST_PARTS:
        caption += f" The first {_MOST_PARTS} of {len(breakdown.names)}; all are in report.json."
    blocks: list[Block] = [
        _breakdown_table(comparison, breakdown, values),
        Paragraph(caption, tone="caption"),
    ]
    if len(breakdown.names) <= MOST_CLASSES and len(comparison.rows) <= _MOST_DRAWN:
        series = [
            GroupValues(row.title, found.tolist())
            for row, found in zip(comparison.rows, values, strict=True)
        ]
        picture = Figure(
            f"breakdown_{number + 1}",
            lambda: grouped_bars(
                breakdown.names,
                series,
                lambda value: wording.value(breakdown.measure, value),
                breakdown.label,
            ),
            alt=f"{breakdown.title}: {breakdown.label} of each method",
            caption=f"{breakdown.title}: the table above as a picture.",
        )
        blocks.append(picture)
    return Section(breakdown.title, blocks, level=3)


def _breakdown_table(
    comparison: Comparison, breakdown: Breakdown, values: NDArray[np.float64]
) -> Table:
    """Methods are rows, for their names are long; many parts are rows instead."""
    parts = range(min(len(breakdown.names), _MOST_PARTS))
    counts = [wording.count(number) for number in breakdown.examples]
    written = [
        [wording.value(breakdown.measure, float(value)) for value in row[: len(parts)]]
        for row in values
    ]
    if len(parts) > _MOST_COLUMNS:
        header = ["", "examples", *(row.title for row in comparison.rows)]
        rows = [
            [breakdown.names[part], counts[part], *(cells[part] for cells in written)]
            for part in parts
        ]
        return Table(header, rows, numeric=range(1, len(header)))
    names = [
        Cell(breakdown.names[part], detail=f"{counts[part]} {comparison.view.noun}")
        for part in parts
    ]
    lines = [[row.title, *cells] for row, cells in zip(comparison.rows, written, strict=True)]
    return Table(["method", *names], lines, numeric=range(1, len(names) + 1))


def _examples(report: Report) -> list[Block]:
    if report.examples is None:
        return [Paragraph(report.examples_left_out or "")]
    blocks: list[Block] = []
    if any(len(row.method.runs) > 1 for row in report.comparison.rows):
        blocks.append(
            Paragraph(
                "Of methods with several seeds all answers are shown; a number in brackets says "
                "how many seeds gave the same one."
            )
        )
    if report.comparison.aligned.inputs is not None:
        blocks.append(
            Paragraph(f"Texts longer than {LONGEST_TEXT} characters are shortened (…).",
                      tone="caption")
        )  # fmt: skip
    if report.comparison.view.passages is not None:
        blocks.append(
            Paragraph("Below every question stands the text it is about, where that is long the "
                      "part around its answer.", tone="caption")
        )  # fmt: skip
    if report.thumbnails.left_out is not None:
        blocks.append(Paragraph(report.thumbnails.left_out, tone="caption"))
    return blocks + [_group(report, group) for group in report.examples]


def _group(report: Report, group: ExampleGroup) -> Details:
    title = group.title if group.size is None else f"{group.title}: {group.size:,}"
    blocks: list[Block] = [Paragraph(group.how, tone="caption")]
    for example in group.examples:
        blocks += _example(report, example)
    return Details(title, blocks)


def _example(report: Report, example: Example) -> list[Block]:
    answers = []
    for answer in example.answers:
        mark = {True: "✓ ", False: "✗ ", None: ""}[answer.right]
        sure = "" if answer.confidence is None else f" ({wording.percent(answer.confidence, 0)})"
        answers.append(f"{answer.title}: {mark}{answer.text}{sure}")
    truth = [] if not example.truth else [f"{report.comparison.view.truth_name}: {example.truth}"]
    asked = [] if example.passage is None else [Quote(example.passage)]
    png = report.thumbnails.files.get(example.id)
    shown = Quote(example.shown) if png is None else Thumbnail(png, example.shown)
    return [shown, *asked, Bullets([*truth, *answers])]
