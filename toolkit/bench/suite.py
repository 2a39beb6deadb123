"""Several benchmarks, one after the other; what cannot be measured costs no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.bench import ResultsDiffer, cases_of
from toolkit.bench.record import BenchResult
from toolkit.bench.runner import measure
from toolkit.bench.settings import BenchSettings
from toolkit.bench.table import result_table
from toolkit.console import console, fail
from toolkit.errors import UserError


@dataclass
class Found:
    """Results of all cases, and why others have none."""

    results: list[BenchResult] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False

    def to_list(self) -> list[dict[str, Any]]:
        """As plain JSON values."""
        problems = [{"benchmark": name, "error": why} for name, why in self.problems.items()]
        return [*(result.to_dict() for result in self.results), *problems]


def measure_all(names: Sequence[str], settings: BenchSettings, quiet: bool = False) -> Found:
    """All cases of the named benchmarks; Ctrl-C ends them, and what was found stays.

    Args:
        quiet: print no tables.
    """
    found = Found()
    try:
        for name in names:
            _measure_one(name, settings, found, quiet)
    except KeyboardInterrupt:
        found.interrupted = True
        fail("interrupted: what was measured until now is kept")
    return found


def _measure_one(name: str, settings: BenchSettings, found: Found, quiet: bool) -> None:
    try:
        cases = cases_of(name, settings)
    except UserError as problem:  # a model or data that are not at hand
        fail(f"{name}: {problem}")
        found.problems[name] = str(problem)
        return
    for number, case in enumerate(cases):
        try:
            result = measure(case, name, number, settings)
        except (ResultsDiffer, UserError, RuntimeError) as problem:  # no memory left, for one
            fail(f"{case.name}: {problem}")
            found.problems[case.name] = str(problem)
            continue
        found.results.append(result)
        if not quiet:
            console.print(result_table(result))
