"""What a benchmark found: seconds, speeds, ratios, what was compared, and on which machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.bench.interleaved import Spread, ratios
from toolkit.bench.settings import BenchSettings
from toolkit.environment import describe_environment


@dataclass(frozen=True)
class BenchResult:
    """Times of several programs that compute the same.

    Args:
        name: of the benchmark.
        task: what was done, in a sentence.
        ours: name of the contender that is compared with the others.
        settings: how it was measured.
        seconds: of every contender, one a round.
        rows: examples of one round.
        units: real tokens, images or new tokens of one round.
        unit: what these are called.
        positions: what each contender computes of them, padding included.
        agreement: what was compared before, and the largest difference.
        goals: how many times as fast as a contender ours is meant to be.
        flops: operations of one round without padding; None: not known.
        machine_flops_per_second: what products of matrices reach here.
        bytes_read: of weights in one round, where that takes longer than to compute.
        machine_bytes_per_second: what reading from memory reaches here.
        memory: largest memory of a contender in bytes, each in a process of its own.
        memory_goal: the share of the first one's that ours may take.
        profile: share of ours' time by operator, largest first.
        note: what a reader should know besides.
    """

    name: str
    task: str
    ours: str
    settings: BenchSettings
    seconds: Mapping[str, list[float]]
    rows: int
    units: int
    unit: str
    positions: Mapping[str, int]
    agreement: Mapping[str, Any]
    goals: Mapping[str, float] = field(default_factory=dict)
    flops: int | None = None
    machine_flops_per_second: float | None = None
    bytes_read: int | None = None
    machine_bytes_per_second: float | None = None
    memory: Mapping[str, int] = field(default_factory=dict)
    memory_goal: float | None = None
    profile: Sequence[tuple[str, float]] = ()
    note: str = ""
    environment: Mapping[str, Any] = field(default_factory=describe_environment)

    @property
    def times_as_fast(self) -> dict[str, Spread]:
        """Ours against each of the others, round by round."""
        return ratios(self.seconds, self.ours)

    @property
    def missed(self) -> list[str]:
        """What fell short of its goal, in words."""
        found = [
            f"{self.times_as_fast[name].median:.3f} times as fast as {name}; the goal is {goal:g}"
            for name, goal in self.goals.items()
            if self.times_as_fast[name].median < goal
        ]
        share = self.memory_share
        if share is not None and self.memory_goal is not None and share > self.memory_goal:
            found.append(f"{share:.0%} of the memory; the goal is {self.memory_goal:.0%}")
        return found

    @property
    def memory_share(self) -> float | None:
        """Ours' peak memory over that of the first of the others."""
        others = [peak for name, peak in self.memory.items() if name != self.ours]
        if not others or not others[0] or self.ours not in self.memory:
            return None
        return self.memory[self.ours] / others[0]

    def limit_share(self, name: str) -> float | None:
        """The least time for products without padding, or for reading, over a contender's time."""
        least = 0.0
        if self.flops is not None and self.machine_flops_per_second:
            least = self.flops / self.machine_flops_per_second
        if self.bytes_read is not None and self.machine_bytes_per_second:
            least = max(least, self.bytes_read / self.machine_bytes_per_second)
        return least / Spread.of(self.seconds[name]).median if least else None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        contenders = {}
        for name, times in self.seconds.items():
            spread = Spread.of(times)
            contenders[name] = {
                "seconds": times,
                **vars(spread),
                "rows_per_second": self.rows / spread.median,
                "units_per_second": self.units / spread.median,
                "computed": self.positions[name],
                "computed_per_unit": self.positions[name] / self.units,
                "share_of_limit": self.limit_share(name),
                "peak_memory_bytes": self.memory.get(name),
            }
        return {
            "benchmark": self.name,
            "task": self.task,
            "settings": vars(self.settings),
            "rows": self.rows,
            "units": self.units,
            "unit": self.unit,
            "agreement": dict(self.agreement),
            "contenders": contenders,
            "times_as_fast": {
                name: {"ours": self.ours, **vars(spread), "goal": self.goals.get(name)}
                for name, spread in self.times_as_fast.items()
            },
            "memory_share": self.memory_share,
            "memory_goal": self.memory_goal,
            "missed": self.missed,
            "flops": self.flops,
            "machine_flops_per_second": self.machine_flops_per_second,
            "bytes_read": self.bytes_read,
            "machine_bytes_per_second": self.machine_bytes_per_second,
            "profile": [{"operator": name, "share": share} for name, share in self.profile],
            "note": self.note,
            "environment": dict(self.environment),
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> BenchResult:
        """What `to_dict` gave."""
        contenders, ratio = found["contenders"], found["times_as_fast"]
        [ours] = set(contenders) - set(ratio)
        return cls(
            name=found["benchmark"], task=found["task"], ours=ours,
            settings=BenchSettings(**found["settings"]),
            seconds={name: one["seconds"] for name, one in contenders.items()},
            rows=found["rows"], units=found["units"], unit=found["unit"],
            positions={name: one["computed"] for name, one in contenders.items()},
            agreement=found["agreement"],
            goals={name: one["goal"] for name, one in ratio.items() if one["goal"] is not None},
            flops=found["flops"],
            machine_flops_per_second=found["machine_flops_per_second"],
            bytes_read=found["bytes_read"],
            machine_bytes_per_second=found["machine_bytes_per_second"],
            memory={
                name: one["peak_memory_bytes"]
                for name, one in contenders.items()
                if one["peak_memory_bytes"] is not None
            },
            memory_goal=found["memory_goal"],
            profile=[(one["operator"], one["share"]) for one in found["profile"]],
            note=found["note"],
            environment=found["environment"],
        )  # fmt: skip
