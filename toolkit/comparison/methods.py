"""Which runs are seeds of one method, and what a method is called."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.comparison.saved_run import SavedRun
from toolkit.json_values import leaves

# Settings that name or show a run, or say what to set it beside, but change nothing it computes.
NAMES = (
    "run_id", "output_dir", "title", "tracker", "published", "push_to_hub", "private",
)  # fmt: skip
_MOST_DIFFERENCES = 3
_IMPLEMENTATION = "implementation"


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

    def mean(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Mean over its runs of values of all runs [runs, ...]."""
        mean: NDArray[np.float64] = values[self.places].mean(axis=0)
        return mean


def leave_out_repeats(
    runs: Sequence[SavedRun], given: Mapping[Path, str] | None = None
) -> tuple[list[SavedRun], list[str]]:
    """Of runs with one method and one seed the newest complete one, and notes about the others.

    A repeated run is no second seed, and a mean over seeds must not count one of them twice. Where
    there is nothing but one run and its repeats, these are what is to be compared: all are left.

    Args:
        given: as for `group_into_methods`.
    """
    groups = _groups(runs, given or {})
    if len(groups) == 1 and len({run.seed for run in runs}) == 1:
        return list(runs), []
    left_out, notes = set(), []
    for places in groups:
        by_seed: dict[int | None, list[int]] = {}
        for place in places:
            by_seed.setdefault(runs[place].seed, []).append(place)
        for seed, same in by_seed.items():
            if len(same) > 1:
                newest = max(same, key=lambda place: runs[place].recency)
                others = [place for place in same if place != newest]
                left_out.update(others)
                listed = ", ".join(str(runs[place].folder) for place in others)
                notes.append(
                    f"{runs[newest].title}, seed {seed}, was run {len(same)} times with the same "
                    f"settings. Compared is the newest, {runs[newest].folder}; left out: {listed}."
                )
    return [run for place, run in enumerate(runs) if place not in left_out], notes


def group_into_methods(
    runs: Sequence[SavedRun], given: Mapping[Path, str] | None = None
) -> tuple[list[Method], list[str]]:
    """Runs by method in order of their first appearance, and notes about what was not grouped.

    `given` names the method of a run by its folder (resolved). Other runs belong together when they
    have the same recipe, settings and data and differ by their seed. Two runs with one seed are no
    two seeds: they stay apart (see `leave_out_repeats`), and so do such runs with other titles.
    """
    kept, notes = [], []
    for places in _groups(runs, given or {}):
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


def _groups(runs: Sequence[SavedRun], given: Mapping[Path, str]) -> list[list[int]]:
    """Places of the runs of each method, in order of first appearance.

    Runs with one seed that are called differently ("before" and "after" a change of the code) are
    meant to be told apart: such a group is parted by title.
    """
    groups: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        name = given.get(run.folder.resolve())
        key = _recognised_by(run, place) if name is None else f"given {name}"
        groups.setdefault(key, []).append(place)
    parted = []
    for places in groups.values():
        if len({runs[place].seed for place in places}) == len(places):
            parted.append(places)
            continue
        by_title: dict[str, list[int]] = {}
        for place in places:
            by_title.setdefault(runs[place].title, []).append(place)
        parted += by_title.values()
    return sorted(parted)


def implementation(run: SavedRun) -> str | None:
    """ "scratch" for our classes, "hf" for HuggingFace's; None where a run does not say."""
    value: str | None = run.config.get(_IMPLEMENTATION)
    return value


def are_twins(one: SavedRun, other: SavedRun) -> bool:
    """Whether two runs differ in nothing but whose classes they use (and the seed).

    With one seed they then start from the same weights and see the same batches in the same order.
    """
    if {implementation(one), implementation(other)} != {"scratch", "hf"}:
        return False
    recipe, others = one.summary.get("recipe"), other.summary.get("recipe")
    without = ("seed", _IMPLEMENTATION)
    same_data = one.data_hash("train") == other.data_hash("train")
    return recipe == others and same_data and settings(one, *without) == settings(other, *without)


def settings(run: SavedRun, *without: str) -> dict[str, Any]:
    """A run's settings as dotted names, apart from those that only name it."""
    return {
        name: value
        for name, value in leaves(run.config)
        if name.split(".")[0] not in NAMES and name not in without
    }


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
