"""Benchmarks: ours and HuggingFace's in one process, in turn, after their results were compared.

A benchmark is a module of this package with a function `measure(settings) -> BenchResult`
(`toolkit.bench.record`). It compares the results first and raises `ResultsDiffer` rather than time
two programs that do not do the same.
"""

from __future__ import annotations

from dataclasses import dataclass

# Name and one line of help; they stand here so that `--help` imports no benchmark.
BENCHMARKS = {
    "predict": "label Chinese reviews: toolkit predict against transformers' pipeline",
}


@dataclass(frozen=True)
class BenchSettings:
    """What a user can say about every benchmark."""

    rounds: int = 5
    """How often each contender is timed, after a warm-up."""
    full: bool = False
    """The large size instead of the one for minutes."""


class ResultsDiffer(Exception):  # noqa: N818  (it is a finding)
    """The contenders do not compute the same: there is nothing to compare in seconds."""
