"""The tables: how good, and at what cost."""

from __future__ import annotations

from collections.abc import Container

from matplotlib.figure import Figure as Picture

from toolkit.comparison.compare import Comparison, Row
from toolkit.plots import Bar, forest_plot
from toolkit.report import wording
from toolkit.report.blocks import (
    Block,
    Bullets,
    Cell,
    Details,
    Figure,
    Paragraph,
    Section,
    Table,
)
from toolkit.report.content import Report
from toolkit.report.cost import cost_columns, mean_and_range
from toolkit.report.implementations import note_on_operations
from toolkit.task_scores.measures import Measure


def section(report: Report) -> Section:
    """Quality with intervals, then cost."""
    comparison = report.comparison
    return Section("Results", [*_quality(comparison), _picture(comparison), *_cost(comparison)])


def _quality(comparison: Comparison) -> list[Block]:
    measures, seeds = comparison.view.measures, comparison.several_seeds
    header = ["method", *(measure.label for measure in measures)]
    if seeds:
        header.append("seeds")
    header.append("p against the best other" + (" (Holm)" if len(comparison.pairs) > 1 else ""))
    rows = []
    for row in comparison.rows:
        strong = row.significantly_best
        cells = [Cell(row.title, strong=strong)]
        for measure in measures:
            estimate = row.estimates[measure.key]
            cells.append(
                Cell(
                    wording.value(measure, estimate.value),
                    strong=strong and measure is comparison.primary,
                    detail=wording.brackets(measure, estimate.interval),
                )
            )
        if seeds:
            cells.append(_seeds(comparison.primary, row))
        cells.append(Cell(wording.p_value(row.p_best_other)))
        rows.append(cells)
    return [
        Table(header, rows, numeric=range(1, len(header))),
        Paragraph(_how_to_read(comparison), tone="caption"),
    ]


def _seeds(measure: Measure, row: Row) -> Cell:
    count = str(len(row.method.runs))
    if row.over_seeds is not None:
        return Cell(count, detail=wording.brackets(measure, row.over_seeds))
    if len(row.method.runs) > 1:
        return Cell(count, detail="all alike")
    return Cell(count)


def _how_to_read(comparison: Comparison) -> str:
    primary = comparison.primary
    better = "highest" if primary.higher_is_better else "lowest"
    sentences = ["In brackets: 95% intervals over test examples"]
    if comparison.several_seeds:
        sentences[0] += (
            "; values are means over seeds, and in the column of the seeds stands the 95% t "
            f"interval of {primary.label} over them"
        )
    if len(comparison.pairs) > 1:
        sentences.append(f"p is adjusted by Holm over all {len(comparison.pairs)} pairs")
    sentences.append(
        f"Bold marks the {better} {primary.label}, and only when it is significantly better than "
        "every other (p below 0.05)"
    )
    return ". ".join(sentences) + "."


def _picture(comparison: Comparison) -> Figure:
    measure = comparison.primary

    def draw() -> Picture:
        return forest_plot(
            [_bar(measure, row) for row in comparison.rows],
            axis_name=f"{comparison.runs[0].split} {measure.label}",
            formatter=lambda value: wording.value(measure, value),
        )

    caption = (
        f"{wording.capitalised(measure.label)} on the {comparison.n:,} examples; the bars are 95% "
        "intervals of each method by itself"
    )
    if comparison.several_seeds:
        caption += " over examples, the thin ones over seeds, the small dots single seeds"
    caption += (
        ". Overlapping bars do not mean that two methods are equal: they saw the same examples, so "
        "the paired tests below are sharper."
    )
    return Figure(
        measure.key,
        draw,
        alt=f"{wording.capitalised(measure.label)} of each method with its 95% interval",
        caption=caption,
    )


def _bar(measure: Measure, row: Row) -> Bar:
    estimate = row.estimates[measure.key]
    values = row.values[measure.key]
    return Bar(
        row.title,
        estimate.value,
        estimate.interval.low,
        estimate.interval.high,
        seeds=values if len(values) > 1 else (),
        seed_low=None if row.over_seeds is None else row.over_seeds.low,
        seed_high=None if row.over_seeds is None else row.over_seeds.high,
    )


def _cost(comparison: Comparison) -> list[Block]:
    columns = cost_columns(comparison)
    header = ["method", "parameters", *(column.heading for column in columns)]
    rows = []
    for row in comparison.rows:
        model = row.run.section("model")
        total = wording.parameters(model.get("parameters_total"))
        trained = wording.parameters(model.get("parameters_trained"))
        known = model.get("parameters_trained") is not None
        cells = [Cell(row.title), Cell(total, detail=f"{trained} trained" if known else None)]
        for column in columns:
            mean, spread = mean_and_range(row, column)
            cells.append(Cell(mean, detail=spread))
        rows.append(cells)
    shown = {column.heading for column in columns}
    return [
        Table(header, rows, numeric=range(1, len(header))),
        Paragraph(" ".join(_how_to_read_costs(comparison, shown)), tone="caption"),
        Details("How costs were measured", [Bullets(_how_costs_were_measured(shown))]),
    ]


def _how_to_read_costs(comparison: Comparison, shown: Container[str]) -> list[str]:
    """What may be ranked, and what differs although the model is the same."""
    sentences = []
    if comparison.several_seeds:
        sentences.append("Means over seeds, their range below.")
    if not comparison.same_machine:
        sentences.append(
            "These times and speeds were taken under different conditions (see above): they must "
            "not be ranked."
        )
    elif not comparison.same_padding:
        sentences.append("Examples and tokens per second must not be ranked (see above).")
    if "tokens/s" in shown:
        sentences.append(
            "Tokens are real ones, without padding, each method's own: across tokenizers compare "
            "examples/s."
        )
    if "computed" in shown and (note := note_on_operations(comparison)) is not None:
        sentences.append(note)
    if "energy" not in shown:
        sentences.append("Energy could not be read on this hardware.")
    return sentences


def _how_costs_were_measured(shown: Container[str]) -> list[str]:
    lines = [
        "Training time counts the training steps and the preparation of their batches (for frozen "
        "features and TF-IDF: the features of the training examples and the fit with the chosen "
        "penalty); tokenisation, evaluation, checkpoints and the search for a penalty are not in "
        "it."
    ]
    if "computed" in shown:
        lines.append(
            "Computed: floating point operations of matrix products, convolutions and attention in "
            "all training steps, padding included, counted in some of them and scaled."
        )
    if "utilisation" in shown:
        lines.append(
            "Utilisation: their rate as a share of what this machine reached in plain matrix "
            "products after training."
        )
    return lines
