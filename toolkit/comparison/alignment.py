"""May these runs be compared at all? Bring their predictions into one order, or say why not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolkit.comparison.saved_run import RunNotFinite, SavedRun
from toolkit.errors import UserError
from toolkit.task_scores.measures import Measure
from toolkit.task_scores.predictions import Predictions
from toolkit.task_scores.tasks import TASKS
from toolkit.task_scores.view import TaskView

# Fields of a metric signature that may differ between runs that can still be compared: counts are
# checked through the example ids, and the library's version says nothing about the definition.
_FREE_SIGNATURE_FIELDS = ("n:", "sentences:", "entities:", "documents:", "scikit-learn:")
_ROUNDING = 1e-9
_SHOWN_LABELS = 10


@dataclass(frozen=True)
class AlignedRuns:
    """Several runs on the same examples in the same order.

    `ids`, `inputs` and `images` (file and row of each) are those of the first run; the latter two
    are None where it recorded none. `view` scores the runs. `reasons` says what would have refused
    the comparison without force, `notes` what was done to make the runs comparable.
    """

    ids: list[str]
    inputs: list[str] | None
    images: list[str] | None
    view: TaskView
    reasons: list[str]
    notes: list[str]


def align(runs: Sequence[SavedRun], force: bool = False) -> AlignedRuns:
    """Check that the runs were measured on the same thing and put their examples in one order.

    Raises:
        UserError: every reason against the comparison. With `force` the comparison is made on the
            examples all runs share and the reasons are kept; what makes it meaningless (no common
            example, other labels, another truth for the same example, another task, a value that
            is not a number: `RunNotFinite`) is refused even then.
    """
    first = runs[0]
    _refuse_what_cannot_be_forced(runs)
    notes = [
        f"{run.title} numbers its labels in another order; they were matched by name."
        for run in runs[1:]
        if run.label_names != first.label_names
    ]
    reasons = [
        f"{run.title}: the run is not complete (status {run.summary['status']!r})."
        for run in runs
        if run.summary["status"] != "complete"
    ]
    for run in runs[1:]:
        reasons += _other_examples(first, run)
    ordered = _in_one_order(runs)
    view = TASKS[first.task].view(first.task, ordered, [run.summary for run in runs])
    view, left_out = _measures_in_common(view, runs)
    notes += left_out
    for run in runs[1:]:
        reasons += _other_measures(view, first, run)
    reasons += _other_selection(runs)
    if all(len(run.test.ids) == len(ordered[0].ids) for run in runs):
        # On a part of its examples a run's value is another one.
        for place, run in enumerate(runs):
            reasons += _wrong_values(view, place, run)
    else:
        for run in runs:
            _refuse_what_is_no_number(view, run)
    if reasons and not force:
        listed = "\n".join(f"  - {reason}" for reason in reasons)
        raise UserError(
            f"These runs cannot be compared fairly:\n{listed}\n"
            "Measure them on the same test set in the same way, or add --force to compare them "
            "all the same: the report will carry a warning."
        )
    return AlignedRuns(ordered[0].ids, ordered[0].inputs, ordered[0].images, view, reasons, notes)


def _refuse_what_cannot_be_forced(runs: Sequence[SavedRun]) -> None:
    first = runs[0]
    for run in runs[1:]:
        if run.task != first.task:
            raise UserError(
                f"{run.folder} solves the task {run.task!r}, {first.folder} the task "
                f"{first.task!r}: their results have no common measure."
            )
        ours, theirs = set(first.label_names or ()), set(run.label_names or ())
        if ours != theirs:
            alone = [
                f"only {folder} has {', '.join(sorted(names)[:_SHOWN_LABELS])}"
                + (f" and {len(names) - _SHOWN_LABELS} more" * (len(names) > _SHOWN_LABELS))
                for folder, names in ((run.folder, theirs - ours), (first.folder, ours - theirs))
                if names
            ]
            raise UserError(
                f"{run.folder} and {first.folder} have different labels: {'; '.join(alone)}. "
                "Labels are matched by name: give the same label names to both runs."
            )


def _other_examples(first: SavedRun, run: SavedRun) -> list[str]:
    """Why two runs were not tested on the same examples."""
    pair = f"{run.title} and {first.title}"
    reasons = []
    missing = len(set(first.test.ids) - set(run.test.ids))
    extra = len(set(run.test.ids) - set(first.test.ids))
    if missing or extra:
        reasons.append(
            f"{pair} were tested on different examples: {missing:,} of the latter's "
            f"{len(first.test.ids):,} are missing in the former, which has {extra:,} others."
        )
    elif first.test.inputs and run.test.inputs and _inputs_by_id(first) != _inputs_by_id(run):
        reasons.append(f"{pair} have different texts under the same example ids.")
    hashes = first.data_hash(first.split), run.data_hash(run.split)
    if None not in hashes and hashes[0] != hashes[1]:
        reasons.append(
            f"{pair} have different content hashes of the test set "
            f"({str(hashes[1])[:12]} and {str(hashes[0])[:12]})."
        )
    return reasons


def _inputs_by_id(run: SavedRun) -> dict[str, str]:
    return dict(zip(run.test.ids, run.test.inputs or [], strict=True))


def _in_one_order(runs: Sequence[SavedRun]) -> list[Predictions]:
    """What the runs say to the examples all of them have, in the order of the first."""
    first = runs[0].test
    common = set(first.ids).intersection(*(run.test.ids for run in runs[1:]))
    if not common:
        raise UserError(
            "These runs have no test example in common, so nothing can be compared: "
            + ", ".join(str(run.folder) for run in runs)
        )
    ids = [example for example in first.ids if example in common]
    ordered = []
    for run in runs:
        if run.test.ids == ids:
            ordered.append(run.test)
            continue
        row_of = {example: row for row, example in enumerate(run.test.ids)}
        ordered.append(run.test.take([row_of[example] for example in ids]))
    for run, predictions in zip(runs[1:], ordered[1:], strict=True):
        _check_truth(run, runs[0], ids, predictions, ordered[0])
    return ordered


def _check_truth(
    run: SavedRun, first: SavedRun, ids: list[str], found: Predictions, expected: Predictions
) -> None:
    different = [row for row in range(len(ids)) if found.truth[row] != expected.truth[row]]
    if different:
        row = different[0]
        raise UserError(
            f"{run.folder} and {first.folder} disagree on the truth itself: the example "
            f"{ids[row]!r} is labelled {found.truth[row]!r} in the former and "
            f"{expected.truth[row]!r} in the latter ({len(different):,} examples differ). "
            "They were tested on different data."
        )


def _measures_in_common(view: TaskView, runs: Sequence[SavedRun]) -> tuple[TaskView, list[str]]:
    """Without the measures per token where tokens differ; the others are left to be checked."""
    kept, left_out = [], []
    for measure in view.measures:
        definitions = {_definition(run, measure.key) for run in runs}
        if measure.needs_same_tokens and len(definitions) > 1:
            left_out.append(measure)
        else:
            kept.append(measure)
    if not kept:
        raise UserError(
            "These runs cut their texts into different tokens, and all that was measured is per "
            f"token ({', '.join(measure.label for measure in left_out)}): nothing is left to "
            "compare."
        )
    notes = [
        f"{measure.label[0].upper()}{measure.label[1:]} is left out: it is per token, and the "
        "runs cut their texts into different tokens."
        for measure in left_out
    ]
    return replace(view, measures=kept), notes


def _other_measures(view: TaskView, first: SavedRun, run: SavedRun) -> list[str]:
    """Why two runs were not measured in the same way."""
    reasons = []
    for measure in view.measures:
        ours, theirs = _definition(first, measure.key), _definition(run, measure.key)
        if ours is not None and theirs is not None and ours != theirs:
            reasons.append(
                f"{run.title} and {first.title} measured {measure.key} differently: {theirs} and "
                f"{ours}."
            )
    return reasons


def _other_selection(runs: Sequence[SavedRun]) -> list[str]:
    """Models chosen by different rules; those that were not trained, or not here, chose nothing."""
    rules: dict[str, str] = {}
    for run in runs:
        rule = run.section("training").get("selection")
        if rule and not str(rule).startswith("nothing"):
            rules.setdefault(str(rule), run.title)
    if len(rules) < 2:
        return []
    listed = "; ".join(f"{title}: {rule}" for rule, title in rules.items())
    return [f"The runs chose their model by different rules ({listed})."]


def _definition(run: SavedRun, key: str) -> str | None:
    """The part of a measure's signature that must agree between runs."""
    described = run.measured.get(key)
    signature = described.get("signature") if isinstance(described, dict) else None
    if signature is None:
        return None
    fields = str(signature).split("|")
    return "|".join(field for field in fields if not field.startswith(_FREE_SIGNATURE_FIELDS))


def _wrong_values(view: TaskView, place: int, run: SavedRun) -> list[str]:
    """Where a run's summary says something else than its predictions."""
    _refuse_what_is_no_number(view, run)
    measure = view.primary
    reported = _reported(run, measure)
    found = float(measure.score(view.statistics(measure.key, place).sum(axis=0)))
    if reported is not None and math.isclose(reported, found, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
        return []
    return [
        f"{run.title}: summary.json reports a {run.split} {measure.label} of {reported}, its "
        f"predictions give {found:.6f}. They do not belong together."
    ]


def _refuse_what_is_no_number(view: TaskView, run: SavedRun) -> None:
    measure = view.primary
    value: Any = run.measured.get(measure.key)
    if not isinstance(value, dict) or "value" not in value:
        return
    number = value["value"]
    if not isinstance(number, int | float) or not math.isfinite(number):
        raise RunNotFinite(
            run,
            f"{run.folder / 'summary.json'}: {run.split}.{measure.key} is {number!r}, not a "
            "number. The run has failed (NaN or no examples): look at its metrics.jsonl, or leave "
            "it out.",
        )


def _reported(run: SavedRun, measure: Measure) -> float | None:
    described = run.measured.get(measure.key)
    value = described.get("value") if isinstance(described, dict) else described
    return float(value) if isinstance(value, int | float) else None
