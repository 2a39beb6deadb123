"""A comparison as tables on the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from toolkit.comparison.compare import Comparison
from toolkit.report import wording
from toolkit.report.content import Report
from toolkit.report.cost import cost_columns, mean_and_range
from toolkit.task_scores.measures import Measure

_MOST_MEASURES = 3
_NARROWEST_TITLE = 12
_WIDEST_HEADING = 12


def print_report(report: Report, console: Console) -> None:
    """Print the table, what a reader must mind, and the verdict last, where the eye ends up."""
    comparison = report.comparison
    if comparison.forced:
        console.print("[bold red]Forced comparison, not a fair one:[/bold red]")
        for reason in comparison.forced:
            console.print(f"  - {escape(reason)}")
    console.print(_fitting_table(comparison, console))
    if comparison.curve:
        console.print(_curve_table(comparison))
    for caution in comparison.cautions:
        console.print(f"[yellow]Note:[/yellow] {escape(caution)}")
    for sentence in report.missing:
        console.print(f"[red]Missing:[/red] {escape(sentence)}")
    console.print()
    console.print(f"[bold]{escape(report.verdict.headline)}[/bold]")
    for line in report.verdict.details:
        console.print(Padding(f"- {escape(line)}", (0, 0, 0, 2)))


def _fitting_table(comparison: Comparison, console: Console) -> Table:
    """With as many measures as the width holds, the deciding one at least."""
    measures = comparison.view.measures[:_MOST_MEASURES]
    while len(measures) > 1:
        table = _table(comparison, measures)
        widths = [column.min_width or 0 for column in table.columns]
        if sum(widths) + 2 * len(widths) <= console.width:
            return table
        measures = measures[:-1]
    return _table(comparison, measures)


def _table(comparison: Comparison, measures: Sequence[Measure]) -> Table:
    pairs, seeds = len(comparison.pairs), comparison.several_seeds
    adjusted = f", Holm over {pairs} pairs" if pairs > 1 else ""
    over = " and means over seeds" if seeds else ""
    table = Table(
        caption=f"{comparison.n:,} test {comparison.view.noun}{over}; [95% interval]; p of the "
        f"deciding test{adjusted}",
        caption_justify="left",
        box=box.HORIZONTALS,  # fits the titles into 80 columns
        show_lines=True,
        pad_edge=False,
        collapse_padding=True,
    )
    columns = _columns(comparison, measures)
    table.add_column("", overflow="fold", min_width=_NARROWEST_TITLE)
    for lines in zip(*columns, strict=True):
        # rich would cut numbers off before it breaks the titles.
        width = max(len(line) for cell in lines for line in cell.splitlines())
        table.add_column(lines[0], justify="right", no_wrap=True, min_width=width)
    for row, cells in zip(comparison.rows, columns[1:], strict=True):
        style = "bold" if row.significantly_best else None
        table.add_row(escape(row.title), *map(escape, cells), style=style)
    return table


def _columns(comparison: Comparison, measures: Sequence[Measure]) -> list[list[str]]:
    """Headings, then the cells of every method, without its title."""
    seeds = comparison.several_seeds
    shown = {column.heading: column for column in cost_columns(comparison)}
    time = shown.get("training time")
    speed = shown.get("tokens/s", shown.get("examples/s"))
    headings = [textwrap.fill(measure.label, _WIDEST_HEADING) for measure in measures]
    headings += ["seeds"] * seeds + ["parameters\n(trained)"]
    headings += ["training" + (f"\n({speed.heading})" if speed else ""), "p against\nbest other"]
    rows = [headings]
    for row in comparison.rows:
        model = row.run.section("model")
        cells = [
            wording.value(measure, row.estimates[measure.key].value)
            + "\n"
            + wording.brackets(measure, row.estimates[measure.key].interval)
            for measure in measures
        ]
        cells += [str(len(row.method.runs))] * seeds
        cells += [
            f"{wording.parameters(model.get('parameters_total'))}\n"
            f"({wording.parameters(model.get('parameters_trained'))})",
            (mean_and_range(row, time)[0] if time else wording.MISSING)
            + (f"\n({mean_and_range(row, speed)[0]})" if speed else ""),
            wording.p_value(row.p_best_other),
        ]
        rows.append(cells)
    return rows


def _curve_table(comparison: Comparison) -> Table:
    sizes, measure = comparison.curve_sizes(), comparison.primary
    table = Table(
        title=f"{measure.label} by number of training examples",
        title_justify="left",
        box=box.HORIZONTALS,
        pad_edge=False,
    )
    table.add_column("", overflow="fold")
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    for series in comparison.curve:
        at_size = {point.train_examples: point.estimate.value for point in series.points}
        table.add_row(
            escape(series.name),
            *(
                wording.value(measure, at_size[size]) if size in at_size else wording.MISSING
                for size in sizes
            ),
        )
    return table
