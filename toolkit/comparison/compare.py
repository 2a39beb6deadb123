"""Compare finished runs example by example: which method is better, by how much, is it certain?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from toolkit import stats
from toolkit.comparison.alignment import AlignedRuns
from toolkit.comparison.cautions import (
    cautions_about,
    cautions_about_logs,
    same_machine,
    same_padding,
)
from toolkit.comparison.learning_curve import CurveSeries, curve_cautions, curve_series
from toolkit.comparison.loading import Given, LeftOut, align_runs, load_runs
from toolkit.comparison.methods import Method, group_into_methods, leave_out_repeats
from toolkit.comparison.pairs import Pair, all_pairs, answers_alike, pair_of
from toolkit.comparison.saved_run import SavedRun
from toolkit.comparison.scores import Scores, score_runs
from toolkit.comparison.training_log import TrainingLog, read_training_log
from toolkit.errors import UserError
from toolkit.progress import working
from toolkit.stats import Estimate, Interval, seed_interval
from toolkit.task_scores.measures import Measure
from toolkit.task_scores.view import TaskView


@dataclass(frozen=True)
class Row:
    """One method in the table. Rows are numbered by the measure that decides, the best first.

    Args:
        estimates: by measure: the mean over seeds, with its interval over test examples.
        values: by measure, one per seed.
        over_seeds: t interval of the deciding measure's mean over seeds; None for fewer than two
            seeds, or where the seed changes nothing.
        seed_matters: False where several seeds gave the same answers.
    """

    method: Method
    estimates: dict[str, Estimate]
    values: dict[str, list[float]]
    over_seeds: Interval | None
    seed_matters: bool
    best_other: int
    p_best_other: float
    significantly_best: bool

    @property
    def title(self) -> str:
        """The method's name in tables."""
        return self.method.title

    @property
    def run(self) -> SavedRun:
        """The first of its runs: what seeds have in common can be read there."""
        return self.method.runs[0]


@dataclass(frozen=True)
class Comparison:
    """Everything a report is made of.

    `aligned` holds all compared runs on the same examples; a method's `places` say which are its
    own. `logs` are what every run logged while it trained, by row, then by seed. `forced` are the
    reasons that a forced comparison overrode, `cautions` what a reader must know, `left_out` the
    runs whose values are no numbers. `target` is the validation value that times are taken to,
    where one was asked for.
    """

    rows: list[Row]
    pairs: list[Pair]
    logs: list[list[TrainingLog]]
    aligned: AlignedRuns
    curve: list[CurveSeries]
    forced: list[str]
    cautions: list[str]
    bootstrap_draws: int
    bootstrap_seed: int
    target: float | None = None
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def n(self) -> int:
        """Number of test examples all runs share."""
        return len(self.aligned.ids)

    @property
    def view(self) -> TaskView:
        """The task's measures on those examples."""
        return self.aligned.view

    @property
    def primary(self) -> Measure:
        """The measure that decides."""
        return self.view.primary

    @property
    def runs(self) -> list[SavedRun]:
        """All runs in the table, method by method."""
        return [run for row in self.rows for run in row.method.runs]

    @property
    def same_machine(self) -> bool:
        """Whether training times of the runs in the table may be ranked."""
        return same_machine(self.runs)

    @property
    def same_padding(self) -> bool:
        """Whether their batches were made in one way, so that speeds may be ranked, too."""
        return same_padding(self.runs)

    @property
    def examples(self) -> str:
        """What was measured on: "test texts", "validation texts"."""
        return f"{self.runs[0].split} {self.view.noun}"

    @property
    def same_tokens(self) -> bool:
        """False where measures per token were left out: losses, too, are of different things."""
        per_token = self.runs[0].task in ("language-modeling", "pretraining")
        return not per_token or any(m.needs_same_tokens for m in self.view.measures)

    @property
    def several_seeds(self) -> bool:
        """Whether any method was run with more than one seed."""
        return any(len(row.method.runs) > 1 for row in self.rows)

    def pair(self, one: int, other: int) -> Pair:
        """The comparison of two rows, whichever is the better one."""
        return pair_of(self.pairs, one, other)

    def further_curve_runs(self) -> list[SavedRun]:
        """Runs that are on the learning curve but not in the table."""
        in_table = {run.folder for run in self.runs}
        runs = [run for line in self.curve for point in line.points for run in point.runs]
        return [run for run in runs if run.folder not in in_table]

    def curve_sizes(self) -> list[int]:
        """Numbers of training examples on the learning curve, rising."""
        return sorted({point.train_examples for line in self.curve for point in line.points})


def compare_runs(
    paths: Sequence[Given],
    learning_curve: Sequence[Given] = (),
    force: bool = False,
    draws: int = stats.BOOTSTRAP_DRAWS,
    seed: int = 0,
    titles: Mapping[Path, str] | None = None,
    methods: Mapping[Path, str] | None = None,
    predictions: Mapping[str, Path] | None = None,
    target: float | None = None,
    leave_out: bool | None = None,
) -> Comparison:
    """Compare two or more methods that were tested on the same examples.

    Args:
        paths: run directories, or runs that have been read. Runs that differ by their seed only are
            one method; of repeats of one run the newest counts.
        learning_curve: further runs of the same methods with other numbers of training examples;
            they appear in the learning curve only, with the compared runs as one point each.
        force: compare what cannot be compared fairly (see `toolkit.comparison.alignment.align`).
        draws: of the bootstrap, whose seed is `seed`.
        titles: replaces the runs' own, by folder.
        methods: the name of the method a run is a seed of, by folder, where that is known.
        predictions: files with the predictions of other systems, by title.
        target: validation value of the selecting metric to take times to.
        leave_out: compare without the runs that have a value which is NaN or infinite, instead of
            refusing; None: where `force` is given, whose reasons then name them.

    Raises:
        UserError: a run cannot be read, the comparison would be unfair, or there is less than two
            methods.
    """
    go_on = force if leave_out is None else leave_out
    with working("reading the runs"):
        runs = load_runs(paths, learning_curve, titles or {}, predictions or {}, go_on)
    by_folder = {folder.resolve(): name for folder, name in (methods or {}).items()}
    compared, repeats = leave_out_repeats(runs.compared, by_folder)
    runs = replace(runs, compared=compared)
    with working(f"comparing {len(runs.compared) + len(runs.others)} runs"):
        runs, aligned = align_runs(runs, force, go_on)
        groups, notes = group_into_methods(runs.compared, by_folder)
        if len(groups) < 2:
            raise UserError(
                "A comparison needs at least two methods; the given runs are seeds of one: "
                + ", ".join(str(run.folder) for run in runs.compared)
            )
        scores = score_runs(aligned.view, len(runs.compared) + len(runs.others), draws, seed)
        deciding = scores[aligned.view.primary.key]
        ordered = _best_first(groups, deciding)
        pairs = all_pairs(ordered, scores, aligned.view, seed)
    rows = [_row(place, ordered, scores, pairs, aligned.view) for place in range(len(ordered))]
    logs = [[read_training_log(run) for run in method.runs] for method in ordered]
    forced = list(aligned.reasons)
    if leave_out is None:
        forced += [f"{found.folder} is left out: {found.reason}" for found in runs.left_out]
    return Comparison(
        rows=rows,
        pairs=pairs,
        logs=logs,
        aligned=aligned,
        curve=curve_series(ordered, runs.others, deciding, aligned.view),
        forced=forced,
        cautions=[
            *aligned.notes,
            *repeats,
            *notes,
            *cautions_about(ordered, aligned.view),
            *cautions_about_logs(ordered, logs),
            *curve_cautions(ordered, runs.others),
        ],
        bootstrap_draws=draws,
        bootstrap_seed=seed,
        target=target,
        left_out=runs.left_out,
    )


def _best_first(methods: Sequence[Method], scores: Scores) -> list[Method]:
    sign = 1 if scores.measure.higher_is_better else -1
    values = [sign * float(method.mean(scores.values)) for method in methods]
    return [methods[place] for place in np.argsort(-np.array(values), kind="stable")]


def _row(
    place: int,
    methods: Sequence[Method],
    scores: dict[str, Scores],
    pairs: Sequence[Pair],
    view: TaskView,
) -> Row:
    method = methods[place]
    alike = answers_alike(method, view)
    estimates, values = {}, {}
    for key, found in scores.items():
        values[key] = found.values[method.places].tolist()
        estimates[key] = found.estimate(method.places, alike)
    best_other = 1 if place == 0 else 0
    own = values[view.primary.key]
    return Row(
        method=method,
        estimates=estimates,
        values=values,
        over_seeds=None if len(own) < 2 or alike else seed_interval(own),
        seed_matters=len(own) < 2 or not alike,
        best_other=best_other,
        p_best_other=pair_of(pairs, place, best_other).p_holm,
        significantly_best=place == 0 and all(p.significant for p in pairs if p.first == 0),
    )
