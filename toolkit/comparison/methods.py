"""Which runs are seeds of one method, and what a method is called."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.comparison.saved_run import SavedRun

# Settings that name or show a run, or say what to set it beside, but change nothing it computes.
NAMES = ("run_id", "output_dir", "title", "tracker", "published")
_MOST_DIFFERENCES = 3


@dataclass(frozen=True)
class Method:
    """Runs that differ by their seed only, ordered by it; often just one.

    `places` are those of the runs in the aligned view.
    """

    title: str
    runs: list[SavedRun]
    places: list[int]

    @property
    def seeds(self) -> list[int | None]:
        """One per run; None where a run has none."""
        return [run.seed for run in self.runs]


def group_into_methods(
    runs: Sequence[SavedRun], given: Mapping[Path, str] | None = None
) -> tuple[list[Method], list[str]]:
    """Runs by method in order of their first appearance, and notes about what was not grouped.

    `given` names the method of a run by its folder (resolved). Other runs belong together when they
    have the same recipe, settings and data and differ by their seed. Two runs with one seed are no
    two seeds: they stay apart.
    """
    given = given or {}
    groups: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        name = given.get(run.folder.resolve())
        key = _recognised_by(run, place) if name is None else f"given {name}"
        groups.setdefault(key, []).append(place)
    kept, notes = [], []
    for places in groups.values():
        seeds = [runs[place].seed for place in places]
        if len(set(seeds)) == len(seeds):
            kept.append(sorted(places, key=lambda place: runs[place].seed or 0))
            continue
        listed = ", ".join(str(runs[place].folder) for place in places)
        notes.append(
            f"Runs with the same settings and the same seed are shown apart: {listed}. Only runs "
            "with different seeds say how much the seed matters."
        )
        kept += [[place] for place in places]
    titles = _distinct_titles([[runs[place] for place in places] for places in kept])
    methods = [
        Method(title, [runs[place] for place in places], places)
        for title, places in zip(titles, kept, strict=True)
    ]
    return methods, notes


def settings(run: SavedRun, *without: str) -> dict[str, Any]:
    """A run's settings as dotted names, apart from those that only name it."""
    return {
        name: value
        for name, value in _leaves(run.config)
        if name.split(".")[0] not in NAMES and name not in without
    }


def _leaves(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _recognised_by(run: SavedRun, place: int) -> str:
    if not run.config or run.seed is None:
        return f"alone {place}"
    recipe, hashes = run.summary.get("recipe"), run.section("data").get("hashes")
    return json.dumps([recipe, hashes, settings(run, "seed")], sort_keys=True, default=str)


def _distinct_titles(groups: Sequence[Sequence[SavedRun]]) -> list[str]:
    """A method's title: that of its first run; where two are equal, with what tells them apart."""
    titles = [runs[0].title for runs in groups]
    repeated = {title for title, count in Counter(titles).items() if count > 1}
    told_apart = [
        f"{title} ({_difference(runs[0], _namesakes(groups, title))})"
        if title in repeated
        else title
        for title, runs in zip(titles, groups, strict=True)
    ]
    for more in (lambda run: run.run_id, lambda run: str(run.folder)):
        count = Counter(told_apart)
        told_apart = [
            title if count[title] == 1 else f"{runs[0].title} ({more(runs[0])})"
            for title, runs in zip(told_apart, groups, strict=True)
        ]
    return told_apart


def _namesakes(groups: Sequence[Sequence[SavedRun]], title: str) -> list[SavedRun]:
    return [runs[0] for runs in groups if runs[0].title == title]


def _difference(run: SavedRun, namesakes: Sequence[SavedRun]) -> str:
    """The settings that differ among runs of one title; the run's name where that says nothing."""
    all_settings = [settings(other, "seed") for other in namesakes]
    names = [
        name
        for name in settings(run, "seed")
        if len({str(other.get(name)) for other in all_settings}) > 1
    ]
    if not names or len(names) > _MOST_DIFFERENCES:
        return run.run_id
    own = settings(run)
    return ", ".join(f"{name} {own[name]}" for name in names)
