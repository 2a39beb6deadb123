"""Are the results of two runs equal to the last bit, and if not, how far apart are they?"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet

from toolkit.errors import UserError
from toolkit.json_values import read_object
from toolkit.rerun.weights import compare_weights

_MEASURED = ("seconds", "joules")
"""What a log says of time and energy: never equal, and no result."""


@dataclass(frozen=True)
class Compared:
    """One kind of result of both runs.

    Args:
        what: its name, for a reader.
        difference: the largest absolute one between two numbers; None where they are equal, or
            where the results are of different kinds.
        where: which number that is, or what differs instead; None where they are equal.
    """

    what: str
    difference: float | None = None
    where: str | None = None

    @property
    def equal(self) -> bool:
        """To the last bit."""
        return self.where is None

    @property
    def in_words(self) -> str:
        """``equal to the last bit``, or how they differ."""
        if self.equal:
            return "equal to the last bit"
        if self.difference is None:
            return f"not equal: {self.where}"
        return f"largest difference {self.difference:.3g}: {self.where}"

    def as_json(self) -> dict[str, Any]:
        """For --json."""
        return {
            "what": self.what,
            "equal": self.equal,
            "largest_difference": self.difference,
            "where": self.where,
        }


def compare_runs(then: Path, now: Path) -> list[Compared]:
    """Compare data, log, weights, predictions and figures of two complete runs.

    What neither of them has is left out.

    Raises:
        UserError: a file is damaged.
    """
    summaries = [read_object(run / "summary.json") for run in (then, now)]
    hashes = [summary.get("data", {}).get("hashes", {}) for summary in summaries]
    found = [Compared("data", where=_other_data(*hashes))]
    found.append(_compared("losses and evaluations", *map(_logged, (then, now))))
    weights = compare_weights(then, now)
    if weights is not None:
        found.append(Compared("weights", *weights))
    names = {file.name for run in (then, now) for file in (run / "predictions").glob("*.parquet")}
    found += [
        Compared(f"predictions on {Path(name).stem}", *_predictions(then, now, name))
        for name in sorted(names)
    ]
    for split in ("validation", "test"):
        figures = [summary.get(split, {}) for summary in summaries]
        if any(figures):
            found.append(_compared(f"figures of {split}", *map(_flat, figures)))
    return found


def _other_data(then: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    changed = [split for split in {**then, **now} if then.get(split) != now.get(split)]
    return f"other rows in {', '.join(changed)}" if changed else None


def _compared(what: str, then: dict[str, Any], now: dict[str, Any]) -> Compared:
    return Compared(what, *_largest_difference(then, now))


def _largest_difference(
    then: Mapping[str, Any], now: Mapping[str, Any]
) -> tuple[float | None, str | None]:
    """The largest difference of two numbers of one name, and where it is; what is not a number
    counts where all numbers are equal.
    """
    largest: float | None = None
    where = other = None
    for name in {**then, **now}:
        a, b = then.get(name), now.get(name)
        if _same(a, b):
            continue
        words = f"{name}: {_shown(a)} then, {_shown(b)} now"
        difference = _difference(a, b)
        if difference is None:
            other = other or words
            continue
        if largest is None or difference > largest or math.isnan(difference):
            largest, where = difference, words
            if math.isnan(difference):
                break
    if largest is not None and len(then) == len(now):
        return largest, where
    return (None, other) if other is not None else (largest, where)


def _logged(run: Path) -> dict[str, Any]:
    """Every number of metrics.jsonl, by step and name."""
    file = run / "metrics.jsonl"
    try:
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        events = [json.loads(line) for line in lines]
    except ValueError as error:
        raise UserError(f"{file} is damaged: {error}") from None
    found: dict[str, Any] = {}
    copies: Counter[str] = Counter()
    for event in events:
        for name, value in _leaves(event):
            if name not in _MEASURED:
                place = f"step {event.get('step')}, {name}"
                copies[place] += 1  # classifiers to choose from are all logged at step 0
                found[place if copies[place] == 1 else f"{place} ({copies[place]})"] = value
    return found


def _predictions(then: Path, now: Path, name: str) -> tuple[float | None, str | None]:
    files = [run / "predictions" / name for run in (then, now)]
    for file, when in zip(files, ("then", "now"), strict=True):
        if not file.is_file():
            return None, f"there are none {when}"
    if files[0].read_bytes() == files[1].read_bytes():
        return None, None
    tables = [pyarrow.parquet.read_table(file).to_pylist() for file in files]
    if len(tables[0]) != len(tables[1]):
        return None, f"{len(tables[0]):,} rows then, {len(tables[1]):,} now"
    return _largest_difference(*map(_cells, tables))


def _cells(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        f"row {number}, {name}": value
        for number, row in enumerate(rows, start=1)
        for name, value in _leaves(row)
    }


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(_leaves(values))


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every single value at any depth of objects and lists, with its place: ``interval.0``."""
    if isinstance(value, dict):
        parts: Iterable[tuple[Any, Any]] = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    else:
        yield name, value
        return
    for key, part in parts:
        yield from _leaves(part, f"{name}.{key}" if name else str(key))


def _same(a: Any, b: Any) -> bool:
    return (a == b and isinstance(a, bool) == isinstance(b, bool)) or (a != a and b != b)


def _difference(a: Any, b: Any) -> float | None:
    """Of two numbers; None where one of the values is none."""
    numbers = [isinstance(x, (int, float)) and not isinstance(x, bool) for x in (a, b)]
    return abs(float(a) - float(b)) if all(numbers) else None


def _shown(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 40 else text[:37] + "..."
