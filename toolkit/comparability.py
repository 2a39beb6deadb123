"""May these runs be compared at all? Bring their predictions into one order, or say why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import UserError
from toolkit.run_results import SavedRun

# Fields of a metric signature that may differ between runs that can still be compared: n is
# checked through the example ids, and the library's version says nothing about the definition.
_FREE_SIGNATURE_FIELDS = ("n:", "scikit-learn:")
_ROUNDING = 1e-9


@dataclass(frozen=True)
class AlignedRuns:
    """Predictions of several runs on the same examples in the same order.

    `labels` has shape (examples,); `predictions` and `confidence` (runs, examples). Label ids are
    those of `label_names`. `texts` and `images` (file and row of each) are those of the first run,
    None where it recorded none. `reasons` says what would have refused the comparison without
    force, `notes` what was done to make the runs comparable.
    """

    ids: list[str]
    texts: list[str] | None
    images: list[str] | None
    label_names: list[str]
    labels: NDArray[np.int64]
    predictions: NDArray[np.int64]
    confidence: NDArray[np.float64]
    reasons: list[str]
    notes: list[str]

    def right(self) -> NDArray[np.bool_]:
        """Which run is right on which example, shape (runs, examples)."""
        return self.predictions == self.labels


def align(runs: Sequence[SavedRun], force: bool = False) -> AlignedRuns:
    """Check that the runs were measured on the same thing and put their examples in one order.

    Raises UserError with every reason against the comparison. With `force` the comparison is made
    on the examples all runs share and the reasons are kept; what makes it meaningless (no common
    example, other labels, another truth for the same example, another task) is refused even then.
    """
    first = runs[0]
    _refuse_what_cannot_be_forced(runs)
    reasons = [reason for run in runs for reason in _doubts_about(run)]
    notes: list[str] = []
    for run in runs[1:]:
        reasons += _differences(first, run)
        if run.label_names != first.label_names:
            notes.append(
                f"{run.title} numbers its labels in another order; they were matched by name."
            )
    if reasons and not force:
        listed = "\n".join(f"  - {reason}" for reason in reasons)
        raise UserError(
            f"These runs cannot be compared fairly:\n{listed}\n"
            "Measure them on the same test set in the same way, or add --force to compare them "
            "all the same: the report will carry a warning."
        )
    return _aligned(runs, reasons, notes)


def _refuse_what_cannot_be_forced(runs: Sequence[SavedRun]) -> None:
    first = runs[0]
    for run in runs[1:]:
        if run.summary["task"] != first.summary["task"]:
            raise UserError(
                f"{run.folder} solves the task {run.summary['task']!r}, {first.folder} the task "
                f"{first.summary['task']!r}: their results have no common measure."
            )
        if set(run.label_names) != set(first.label_names):
            raise UserError(
                f"{run.folder} has the labels {run.label_names}, {first.folder} has "
                f"{first.label_names}. Labels are matched by name, and these names differ: give "
                "the same label names to both runs."
            )


def _doubts_about(run: SavedRun) -> list[str]:
    """What is wrong with one run by itself."""
    doubts = []
    if run.summary["status"] != "complete":
        doubts.append(f"{run.title}: the run is not complete (status {run.summary['status']!r}).")
    reported = (run.section("test").get("accuracy") or {}).get("value")
    found = float(np.mean(run.test.predictions == run.test.labels))
    if reported is None or not abs(reported - found) <= _ROUNDING:
        doubts.append(
            f"{run.title}: summary.json reports a test accuracy of {reported}, its predictions "
            f"give {found:.6f}. They do not belong together."
        )
    return doubts


def _differences(first: SavedRun, run: SavedRun) -> list[str]:
    """Why two runs were not measured on the same thing in the same way."""
    pair = f"{run.title} and {first.title}"
    reasons = []
    missing = len(set(first.test.ids) - set(run.test.ids))
    extra = len(set(run.test.ids) - set(first.test.ids))
    if missing or extra:
        reasons.append(
            f"{pair} were tested on different examples: {missing:,} of the latter's "
            f"{len(first.test.ids):,} are missing in the former, which has {extra:,} others."
        )
    elif _texts_by_id(first) != _texts_by_id(run):
        reasons.append(f"{pair} have different texts under the same example ids.")
    hashes = first.data_hash("test"), run.data_hash("test")
    if None not in hashes and hashes[0] != hashes[1]:
        reasons.append(
            f"{pair} have different content hashes of the test set "
            f"({str(hashes[1])[:12]} and {str(hashes[0])[:12]})."
        )
    for name in sorted({*first.section("test"), *run.section("test")}):
        ours, theirs = _definition(first, name), _definition(run, name)
        if ours is not None and theirs is not None and ours != theirs:
            reasons.append(f"{pair} measured {name} differently: {theirs} and {ours}.")
    return reasons


def _texts_by_id(run: SavedRun) -> dict[str, str] | None:
    return None if run.test.texts is None else dict(zip(run.test.ids, run.test.texts, strict=True))


def _definition(run: SavedRun, metric: str) -> str | None:
    """The part of a metric's signature that must agree between runs."""
    described = run.section("test").get(metric)
    signature = described.get("signature") if isinstance(described, dict) else None
    if signature is None:
        return None
    fields = str(signature).split("|")
    return "|".join(field for field in fields if not field.startswith(_FREE_SIGNATURE_FIELDS))


def _aligned(runs: Sequence[SavedRun], reasons: list[str], notes: list[str]) -> AlignedRuns:
    first = runs[0]
    common = set(first.test.ids).intersection(*(run.test.ids for run in runs[1:]))
    if not common:
        raise UserError(
            "These runs have no test example in common, so nothing can be compared: "
            + ", ".join(str(run.folder) for run in runs)
        )
    kept = [row for row, example in enumerate(first.test.ids) if example in common]
    ids = [first.test.ids[row] for row in kept]
    labels = first.test.labels[kept]
    predictions = np.empty((len(runs), len(ids)), dtype=np.int64)
    confidence = np.empty((len(runs), len(ids)))
    for index, run in enumerate(runs):
        row_of = {example: row for row, example in enumerate(run.test.ids)}
        rows = [row_of[example] for example in ids]
        to_first = np.array([first.label_names.index(name) for name in run.label_names])
        _check_truth(run, first, ids, to_first[run.test.labels[rows]], labels)
        predictions[index] = to_first[run.test.predictions[rows]]
        confidence[index] = run.test.confidence[rows]
    texts, images = first.test.texts, first.test.images
    return AlignedRuns(
        ids=ids,
        texts=None if texts is None else [texts[row] for row in kept],
        images=None if images is None else [images[row] for row in kept],
        label_names=first.label_names,
        labels=labels,
        predictions=predictions,
        confidence=confidence,
        reasons=reasons,
        notes=notes,
    )


def _check_truth(
    run: SavedRun,
    first: SavedRun,
    ids: list[str],
    truth: NDArray[np.int64],
    expected: NDArray[np.int64],
) -> None:
    different = np.flatnonzero(truth != expected)
    if len(different) > 0:
        row = int(different[0])
        names = first.label_names
        raise UserError(
            f"{run.folder} and {first.folder} disagree on the truth itself: the example "
            f"{ids[row]!r} is labelled {names[truth[row]]!r} in the former and "
            f"{names[expected[row]]!r} in the latter ({len(different):,} examples differ). "
            "They were tested on different data."
        )
