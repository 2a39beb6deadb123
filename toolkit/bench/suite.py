"""Several benchmarks, one after the other; what cannot be measured costs no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.bench import ResultsDiffer, cases_of
from toolkit.bench.memory import MemoryNotMeasured
from toolkit.bench.record import BenchResult
from toolkit.bench.runner import measure
from toolkit.bench.settings import BenchSettings
from toolkit.bench.table import result_table
from toolkit.console import console, fail


@dataclass
class Found:
    """Results of all cases, and why others have none."""

    results: list[BenchResult] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)

    def to_list(self) -> list[dict[str, Any]]:
        """As plain JSON values."""
        problems = [{"benchmark": name, "error": why} for name, why in self.problems.items()]
        return [*(result.to_dict() for result in self.results), *problems]


def measure_all(names: Sequence[str], settings: BenchSettings, quiet: bool = False) -> Found:
    """All cases of the named benchmarks.

    Args:
        quiet: print no tables.

    Raises:
        UserError: a model or data are not at hand.
    """
    found = Found()
    for name in names:
        for number, case in enumerate(cases_of(name, settings)):
            try:
                result = measure(case, name, number, settings)
            except (ResultsDiffer, MemoryNotMeasured) as problem:
                fail(f"{case.name}: {problem}")
                found.problems[case.name] = str(problem)
                continue
            found.results.append(result)
            if not quiet:
                console.print(result_table(result))
    return found
