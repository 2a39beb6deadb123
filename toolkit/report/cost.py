"""What training cost, as means over a method's seeds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from toolkit.comparison.compare import Comparison, Row
from toolkit.report import wording


@dataclass(frozen=True)
class CostColumn:
    """One column of the table of costs: its heading and the value of a run's summary."""

    heading: str
    section: str
    key: str
    written: Callable[[float], str]


COLUMNS = (
    CostColumn("training time", "training", "seconds", wording.seconds),
    CostColumn("examples/s", "training", "examples_per_second", wording.rate),
    CostColumn("tokens/s", "training", "tokens_per_second", wording.rate),
    CostColumn("peak memory", "training", "peak_memory_bytes", wording.size),
    CostColumn("energy", "training", "energy_joules", wording.energy),
    CostColumn("computed", "training", "flops", wording.operations),
    CostColumn("utilisation", "training", "utilisation", lambda share: wording.percent(share, 0)),
)


def cost_columns(comparison: Comparison) -> list[CostColumn]:
    """Those that any run recorded."""
    return [c for c in COLUMNS if any(values_of(row, c) for row in comparison.rows)]


def values_of(row: Row, column: CostColumn) -> list[float]:
    """What the method's runs recorded, one entry per seed that did."""
    found = [run.section(column.section).get(column.key) for run in row.method.runs]
    return [
        float(value) for value in found if isinstance(value, int | float) and math.isfinite(value)
    ]


def mean_and_range(row: Row, column: CostColumn) -> tuple[str, str | None]:
    """The mean over seeds in words, and the range where the seeds differ in what is written."""
    values = values_of(row, column)
    if not values:
        return wording.MISSING, None
    low, high = column.written(min(values)), column.written(max(values))
    mean = column.written(sum(values) / len(values))
    return mean, None if low == high else _range(low, high)


def _range(low: str, high: str) -> str:
    """ "104 s", "110 s" -> "104–110 s"; units that differ stay."""
    for unit in (low.rpartition(" ")[2], "%"):
        if low.endswith(unit) and high.endswith(unit) and low != unit:
            low = low.removesuffix(unit).rstrip()
            break
    return f"{low}–{high}"
