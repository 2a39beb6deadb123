"""Compare finished runs example by example: who is better, by how much, and is that certain?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolkit import stats
from toolkit.comparability import AlignedRuns, align
from toolkit.errors import UserError
from toolkit.learning_curve import CurveSeries, curve_series
from toolkit.run_results import SavedRun, load_run
from toolkit.stats import Estimate, Interval, PairedCounts, accuracy_estimate

ALPHA = 1 - stats.CONFIDENCE
# What must be equal before two training times may be ranked.
SPEED_CONDITIONS = ("device", "processor", "gpus", "threads", "precision", "processes")


@dataclass(frozen=True)
class Row:
    """One run in the table. Rows are numbered by accuracy, the best first."""

    run: SavedRun
    title: str
    accuracy: Estimate
    macro_f1: Estimate
    best_other: int
    p_best_other: float
    significantly_best: bool


@dataclass(frozen=True)
class Pair:
    """Two rows compared on the same examples; `first` is the row with the higher accuracy.

    Differences are first minus second. `p_holm` is adjusted over all pairs of the comparison.
    """

    first: int
    second: int
    counts: PairedCounts
    interval: Interval
    p_value: float
    p_holm: float
    macro_f1_difference: Estimate

    @property
    def significant(self) -> bool:
        """Whether the two accuracies differ at the 5 % level after Holm's adjustment."""
        return self.p_holm < ALPHA


@dataclass(frozen=True)
class Comparison:
    """Everything a report is made of.

    `aligned` holds labels, predictions and texts with one row of predictions per table row.
    `forced` are the reasons that a forced comparison overrode, `cautions` what a reader must know.
    """

    rows: list[Row]
    pairs: list[Pair]
    aligned: AlignedRuns
    curve: list[CurveSeries]
    forced: list[str]
    cautions: list[str]
    bootstrap_draws: int
    bootstrap_seed: int

    @property
    def n(self) -> int:
        """Number of test examples all runs share."""
        return len(self.aligned.ids)

    @property
    def same_speed_conditions(self) -> bool:
        """Whether training times and speeds of the runs in the table may be ranked."""
        return _same_speed_conditions([row.run for row in self.rows])

    def pair(self, one: int, other: int) -> Pair:
        """The comparison of two rows, whichever is the better one."""
        return next(pair for pair in self.pairs if {pair.first, pair.second} == {one, other})

    def further_curve_runs(self) -> list[SavedRun]:
        """Runs that are on the learning curve but not in the table."""
        in_table = {row.run.folder for row in self.rows}
        runs = [point.run for line in self.curve for point in line.points]
        return [run for run in runs if run.folder not in in_table]

    def curve_sizes(self) -> list[int]:
        """Numbers of training examples on the learning curve, rising."""
        return sorted({point.train_examples for line in self.curve for point in line.points})

    def label_counts(self) -> dict[str, int]:
        """How many test examples carry each label, in id order."""
        counts = np.bincount(self.aligned.labels, minlength=len(self.aligned.label_names))
        return dict(zip(self.aligned.label_names, counts.tolist(), strict=True))


def compare_runs(
    paths: Sequence[str | Path],
    learning_curve: Sequence[str | Path] = (),
    force: bool = False,
    draws: int = stats.BOOTSTRAP_DRAWS,
    seed: int = 0,
    titles: Mapping[Path, str] | None = None,
) -> Comparison:
    """Compare two or more run directories that were tested on the same examples.

    `learning_curve` are further runs of the same methods with other numbers of training examples;
    they appear in the learning curve only, with the compared runs as one point each. `draws` and
    `seed` belong to the bootstrap of macro F1. `titles` replaces the runs' own, by folder.

    Raises UserError when a run cannot be read or when the comparison would be unfair (see
    `toolkit.comparability.align` for what `force` allows).
    """
    folders = _distinct(paths)
    if len(folders) < 2:
        raise UserError(f"A comparison needs at least two runs, found {len(folders)}.")
    given = {folder.resolve(): title for folder, title in (titles or {}).items()}
    compared = [_titled(load_run(folder), given) for folder in folders]
    already = {folder.resolve() for folder in folders}
    others = [
        _titled(load_run(folder), given)
        for folder in _distinct(learning_curve, allow_repeats=True)
        if folder.resolve() not in already
    ]

    aligned = align([*compared, *others], force)
    right = aligned.right()
    order = np.argsort(-right[: len(compared)].mean(axis=1), kind="stable").tolist()
    runs = [compared[index] for index in order]
    shown = _distinct_titles(runs)
    table = replace(
        aligned, predictions=aligned.predictions[order], confidence=aligned.confidence[order]
    )
    scores = stats.macro_f1_draws(
        table.labels, table.predictions, len(table.label_names), draws, seed
    )
    macro_f1 = _macro_f1_estimates(table, scores)
    pairs = _pairs(table, macro_f1, scores)
    curve = curve_series(runs, shown, right[order], others, right[len(compared) :])
    return Comparison(
        rows=_rows(runs, shown, table, macro_f1, pairs),
        pairs=pairs,
        aligned=table,
        curve=curve,
        forced=aligned.reasons,
        cautions=[*aligned.notes, *_cautions(runs, shown), *_single_answers(table, shown)],
        bootstrap_draws=draws,
        bootstrap_seed=seed,
    )


def _distinct(paths: Sequence[str | Path], allow_repeats: bool = False) -> list[Path]:
    seen: dict[Path, Path] = {}
    for path in map(Path, paths):
        if path.resolve() in seen and not allow_repeats:
            raise UserError(f"The run {path} was given twice; a run cannot be its own rival.")
        seen.setdefault(path.resolve(), path)
    return list(seen.values())


def _titled(run: SavedRun, titles: Mapping[Path, str]) -> SavedRun:
    """The run under the title that the caller gave it, else under its own."""
    title = titles.get(run.folder.resolve(), run.title)
    return replace(run, summary=run.summary | {"title": title})


def _distinct_titles(runs: Sequence[SavedRun]) -> list[str]:
    titles = [run.title for run in runs]
    for more in (lambda run: run.run_id, lambda run: str(run.folder)):
        count = Counter(titles)
        titles = [
            title if count[title] == 1 else f"{run.title} ({more(run)})"
            for run, title in zip(runs, titles, strict=True)
        ]
    return titles


def _macro_f1_estimates(table: AlignedRuns, scores: NDArray[np.float64]) -> list[Estimate]:
    values = [
        stats.macro_f1(table.labels, predicted, len(table.label_names))
        for predicted in table.predictions
    ]
    intervals = [stats.bootstrap_interval(draws) for draws in scores]
    return [
        Estimate(value, interval, error)
        for value, (interval, error) in zip(values, intervals, strict=True)
    ]


def _pairs(
    table: AlignedRuns, macro_f1: Sequence[Estimate], scores: NDArray[np.float64]
) -> list[Pair]:
    right = table.right()
    places = [(i, j) for i in range(len(right)) for j in range(i + 1, len(right))]
    counts = [stats.paired_counts(right[i], right[j]) for i, j in places]
    p_values = [stats.exact_mcnemar(count) for count in counts]
    adjusted = stats.holm(p_values)
    pairs = []
    for (i, j), count, p_value, p_holm in zip(places, counts, p_values, adjusted, strict=True):
        interval, error = stats.bootstrap_interval(scores[i] - scores[j])
        pairs.append(
            Pair(
                first=i,
                second=j,
                counts=count,
                interval=stats.paired_difference_interval(count),
                p_value=p_value,
                p_holm=p_holm,
                macro_f1_difference=Estimate(
                    macro_f1[i].value - macro_f1[j].value, interval, error
                ),
            )
        )
    return pairs


def _rows(
    runs: Sequence[SavedRun],
    titles: Sequence[str],
    table: AlignedRuns,
    macro_f1: Sequence[Estimate],
    pairs: Sequence[Pair],
) -> list[Row]:
    right = table.right()
    by_place = {(pair.first, pair.second): pair for pair in pairs}
    rows = []
    for index, run in enumerate(runs):
        best_other = 1 if index == 0 else 0
        against_best = by_place[min(index, best_other), max(index, best_other)]
        beats_all = index == 0 and all(pair.significant for pair in pairs if pair.first == 0)
        rows.append(
            Row(
                run=run,
                title=titles[index],
                accuracy=accuracy_estimate(right[index]),
                macro_f1=macro_f1[index],
                best_other=best_other,
                p_best_other=against_best.p_holm,
                significantly_best=beats_all,
            )
        )
    return rows


def _cautions(runs: Sequence[SavedRun], titles: Sequence[str]) -> list[str]:
    cautions = []
    same_machine = _same_speed_conditions(runs)
    if not same_machine:
        cautions.append(
            "The runs were trained on different hardware, precision or numbers of threads or "
            "processes: their training times and speeds must not be ranked."
        )
    budgets = {run.max_seconds for run in runs}
    if len(budgets) > 1:
        given = [f"{title} {_budget(run)}" for run, title in zip(runs, titles, strict=True)]
        cautions.append(f"The runs had different budgets of training time: {', '.join(given)}.")
    elif budgets != {None} and not same_machine:
        cautions.append(
            "Their budget of training time is the same, but not what their machines do in it."
        )
    for split, what in (("train", "trained on"), ("validation", "selected on")):
        groups: dict[str | None, list[str]] = {}
        for run, title in zip(runs, titles, strict=True):
            groups.setdefault(run.data_hash(split), []).append(title)
        if len(groups) > 1:
            listed = " | ".join(", ".join(group) for group in groups.values())
            cautions.append(f"The runs were not all {what} the same examples: {listed}.")
    selections = {str(run.section("training").get("selection")) for run in runs}
    if len(selections) > 1:
        cautions.append(f"The runs chose their model by different rules: {_listed(selections)}.")
    return cautions


def _same_speed_conditions(runs: Sequence[SavedRun]) -> bool:
    conditions = {
        tuple(str(run.section("environment").get(key)) for key in SPEED_CONDITIONS) for run in runs
    }
    return len(conditions) == 1


def _budget(run: SavedRun) -> str:
    return "none" if run.max_seconds is None else f"{run.max_seconds:,g} s"


def _single_answers(table: AlignedRuns, titles: Sequence[str]) -> list[str]:
    """Runs that learnt nothing but one label: accuracy hides that on an imbalanced test set."""
    return [
        f"{title} answers {table.label_names[predicted[0]]!r} to every example."
        for title, predicted in zip(titles, table.predictions, strict=True)
        if (predicted == predicted[0]).all()
    ]


def _listed(values: set[str]) -> str:
    return "; ".join(sorted(values))
