"""A comparison as a table on the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from toolkit.compare import Comparison
from toolkit.report import wording
from toolkit.report.example_kind import example_kind
from toolkit.report.time_to_accuracy import TimeToAccuracy, time_to_accuracy
from toolkit.report.verdict import verdict


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print the table, what a reader must mind, and the verdict last, where the eye ends up."""
    if comparison.forced:
        console.print("[bold red]Forced comparison, not a fair one:[/bold red]")
        for reason in comparison.forced:
            console.print(f"  - {escape(reason)}")
    console.print(_table(comparison))
    times = time_to_accuracy(comparison)
    if times is not None and times.seconds:
        console.print(_time_table(comparison, times))
    if comparison.curve:
        console.print(_curve_table(comparison))
    for caution in comparison.cautions:
        console.print(f"[yellow]Note:[/yellow] {escape(caution)}")
    console.print()
    words = verdict(comparison)
    console.print(f"[bold]{escape(words.headline)}[/bold]")
    for line in words.details:
        console.print(Padding(f"- {escape(line)}", (0, 0, 0, 2)))


def _table(comparison: Comparison) -> Table:
    pairs, kind = len(comparison.pairs), example_kind(comparison)
    adjusted = f", Holm over {pairs} pairs" if pairs > 1 else ""
    table = Table(
        caption=f"{comparison.n:,} test examples; [95% interval]; p: exact McNemar{adjusted}",
        caption_justify="left",
        box=box.HORIZONTALS,  # fits the titles into 80 columns
        show_lines=True,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("", overflow="fold")
    for heading in (
        "accuracy",
        "macro F1",
        "parameters\n(trained)",
        f"training\n({kind.speed_unit})",
        "p against\nbest other",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in comparison.rows:
        model, training = row.run.section("model"), row.run.section("training")
        total = wording.parameters(model.get("parameters_total"))
        trained = wording.parameters(model.get("parameters_trained"))
        duration = wording.seconds(training.get("seconds"))
        table.add_row(
            escape(row.title),
            escape(wording.percent_with_interval(row.accuracy).replace(" [", "\n[")),
            escape(wording.percent_with_interval(row.macro_f1).replace(" [", "\n[")),
            f"{total}\n({trained})",
            f"{duration}\n({wording.rate(kind.speed(row.run))})",
            wording.p_value(row.p_best_other),
            style="bold" if row.significantly_best else None,
        )
    return table


def _time_table(comparison: Comparison, times: TimeToAccuracy) -> Table:
    table = Table(
        title="training time to an accuracy on validation",
        title_justify="left",
        box=box.HORIZONTALS,
        pad_edge=False,
    )
    table.add_column("", overflow="fold")
    for level in times.seconds:
        table.add_column(wording.level(level), justify="right")
    for place, row in enumerate(comparison.rows):
        shown = (wording.seconds(seconds[place]) for seconds in times.seconds.values())
        table.add_row(escape(row.title), *shown)
    return table


def _curve_table(comparison: Comparison) -> Table:
    sizes = comparison.curve_sizes()
    table = Table(
        title="accuracy by number of training examples",
        title_justify="left",
        box=box.HORIZONTALS,
        pad_edge=False,
    )
    table.add_column("", overflow="fold")
    for size in sizes:
        table.add_column(f"{size:,}", justify="right")
    for series in comparison.curve:
        at_size = {point.train_examples: point.accuracy for point in series.points}
        table.add_row(
            escape(series.name),
            *(
                wording.percent(at_size[s].value) if s in at_size else wording.MISSING
                for s in sizes
            ),
        )
    return table
