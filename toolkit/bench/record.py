"""What a benchmark found: seconds, speeds, ratios, what was compared, and on which machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

from toolkit.bench.interleaved import Spread, ratios
from toolkit.environment import describe_environment


@dataclass(frozen=True)
class BenchResult:
    """Times of several programs that compute the same.

    Args:
        name: of the benchmark.
        task: what was done, in a sentence.
        ours: name of the contender that is compared with the others.
        seconds: of every contender, one a round.
        rows: examples of one run.
        real_tokens: tokens of the examples, without padding.
        padded_tokens: positions that each contender computes.
        agreement: what was compared before, and the largest difference.
    """

    name: str
    task: str
    ours: str
    seconds: Mapping[str, list[float]]
    rows: int
    real_tokens: int
    padded_tokens: Mapping[str, int]
    agreement: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        contenders = {}
        for name, times in self.seconds.items():
            spread = Spread.of(times)
            contenders[name] = {
                "seconds": times,
                **vars(spread),
                "rows_per_second": self.rows / spread.median,
                "real_tokens_per_second": self.real_tokens / spread.median,
                "padded_tokens": self.padded_tokens[name],
                "padded_per_real": self.padded_tokens[name] / self.real_tokens,
            }
        return {
            "benchmark": self.name,
            "task": self.task,
            "rows": self.rows,
            "real_tokens": self.real_tokens,
            "agreement": dict(self.agreement),
            "contenders": contenders,
            "times_as_fast": {
                name: {"ours": self.ours, **vars(spread)}
                for name, spread in ratios(self.seconds, self.ours).items()
            },
            "environment": describe_environment(),
        }

    def table(self) -> Table:
        """One row a contender; how many times as fast ours is as each of the others."""
        table = Table(
            title=f"{self.name}: {self.task}", title_justify="left", caption_justify="left",
            caption=_machine(describe_environment()),
        )  # fmt: skip
        table.add_column("program", no_wrap=True)
        for column in ("seconds", "rows/s", "tokens/s", "padding", "ours"):
            table.add_column(column, justify="right")
        faster = ratios(self.seconds, self.ours)
        for name, times in self.seconds.items():
            spread = Spread.of(times)
            ratio = faster.get(name)
            table.add_row(
                escape(name),
                f"{spread.median:.2f}\n{spread.lowest:.1f}-{spread.highest:.1f}",
                f"{self.rows / spread.median:,.1f}",
                f"{self.real_tokens / spread.median:,.0f}",
                f"{self.padded_tokens[name] / self.real_tokens:.2f}",
                "" if ratio is None
                else f"{ratio.median:.2f}x\n{ratio.lowest:.2f}-{ratio.highest:.2f}",
            )  # fmt: skip
        return table


def _machine(environment: Mapping[str, Any]) -> str:
    where = ", ".join(environment["gpus"]) or environment["processor"]
    versions = environment["packages"]
    return (
        f"{where}, {environment['threads']} threads; torch {versions['torch']}, transformers "
        f"{versions['transformers']}; medians, below them lowest-highest, of rounds taken in "
        "turn; tokens are real ones; padding: computed per real token; ours: how many "
        "times as fast it is"
    )
