"""A benchmark's result in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from toolkit.bench.interleaved import Spread
from toolkit.bench.record import BenchResult


def result_table(result: BenchResult) -> Table:
    """One row a contender; how many times as fast ours is as each of the others."""
    table = Table(
        title=f"{result.name}: {result.task}", title_justify="left", caption_justify="left",
        caption=caption(result),
    )  # fmt: skip
    table.add_column("program", no_wrap=True)
    for column in ("seconds", f"{result.unit}/s", "padded", "limit", "memory", "ours"):
        table.add_column(column, justify="right")
    for cells in rows_of(result):
        table.add_row(*(escape("\n".join(filter(None, cell))) for cell in cells))
    return table


def rows_of(result: BenchResult) -> list[list[tuple[str, str]]]:
    """Program, seconds, units a second, computed per unit, share of the limit, memory, ratio.

    Each as a text and, in smaller letters where there are some, its range over the rounds.
    """
    faster, rows = result.times_as_fast, []
    for name, times in result.seconds.items():
        spread, share, peak = Spread.of(times), result.limit_share(name), result.memory.get(name)
        ratio = faster.get(name)
        rows.append(
            [
                (name, ""),
                (f"{spread.median:.2f}", f"{spread.lowest:.3g}-{spread.highest:.3g}"),
                (_rate(result.units / spread.median), ""),
                (f"{result.positions[name] / result.units:.2f}", ""),
                ("" if share is None else f"{share:.0%}", ""),
                ("" if peak is None else f"{peak / 1e9:.2f} GB", ""),
                ("", "")
                if ratio is None
                else (f"{ratio.median:.2f}x", f"{ratio.lowest:.3g}-{ratio.highest:.3g}"),
            ]
        )
    return rows


def caption(result: BenchResult) -> str:
    """What agrees, what missed its goal and why, and on which machine."""
    lines = [agreement_line(result)]
    if result.note:
        lines.append(result.note)
    if result.missed:
        lines.append(f"Missed: {'; '.join(result.missed)}. {profile_line(result)}")
    lines.append(
        f"{machine(result.environment, result.settings.device)}; {result.settings.precision}. "
        f"Medians (lowest-highest) of {len(result.seconds[result.ours])} rounds taken in turn; "
        "padded: computed, per "
        "real one; limit: the least time for its products here, without padding (or, where that "
        "is more, for reading its weights); "
        "ours: how many times as fast it is."
    )
    return "\n".join(lines)


def agreement_line(result: BenchResult) -> str:
    """What was compared before anything was timed."""
    compared = result.agreement
    return (
        f"Compared first: {compared['compared']}; largest difference "
        f"{compared['largest_difference']:.2g} (allowed {compared['tolerance']:g})."
    )


def profile_line(result: BenchResult) -> str:
    """Where ours spends its time."""
    if not result.profile:
        return "No profile was taken."
    parts = ", ".join(f"{name} {share:.0%}" for name, share in result.profile)
    return f"Where ours spends its time: {parts}."


def machine(environment: Mapping[str, Any], device: str) -> str:
    """Processor or GPU, threads and versions."""
    where = environment["processor"] if device == "cpu" else ", ".join(environment["gpus"])
    versions = environment["packages"]
    return (
        f"{where}, {environment['threads']} threads; torch {versions['torch']}, transformers "
        f"{versions['transformers']}"
    )


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
