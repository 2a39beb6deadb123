"""From what a user gives to runs on the same examples; those whose values are no numbers go out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.comparison.alignment import AlignedRuns, align
from toolkit.comparison.outside import load_outside
from toolkit.comparison.saved_run import RunNotFinite, SavedRun, load_run
from toolkit.errors import UserError
from toolkit.task_scores.predictions import NotFinite

Given = str | Path | SavedRun
"""A run directory, or one that has been read."""


@dataclass(frozen=True)
class LeftOut:
    """A run that cannot be compared, and why: a value of it is NaN or infinite."""

    folder: Path
    reason: str


@dataclass(frozen=True)
class LoadedRuns:
    """The runs to be compared, further ones of the learning curve, and those that went out."""

    compared: list[SavedRun]
    others: list[SavedRun]
    left_out: list[LeftOut]

    def without(self, run: SavedRun, reason: str) -> LoadedRuns:
        """The same less a run."""
        return LoadedRuns(
            [other for other in self.compared if other is not run],
            [other for other in self.others if other is not run],
            [*self.left_out, LeftOut(run.folder, reason)],
        )


def load_runs(
    paths: Sequence[Given],
    learning_curve: Sequence[Given],
    titles: Mapping[Path, str],
    predictions: Mapping[str, Path],
    leave_out: bool,
) -> LoadedRuns:
    """Read what is to be compared; under the titles that the caller gave.

    Args:
        leave_out: runs whose values are not finite, instead of refusing the comparison.

    Raises:
        UserError: a run or a file cannot be read, a run is given twice, or less than two are given.
    """
    given = _distinct(paths)
    if not given or len(given) + len(predictions) < 2:
        raise UserError(
            f"A comparison needs at least two runs, or one and a file of predictions; found "
            f"{len(given)} run directories and {len(predictions)} files."
        )
    by_folder = {folder.resolve(): title for folder, title in titles.items()}
    left_out: list[LeftOut] = []

    def read(runs: Sequence[Given]) -> list[SavedRun]:
        found = []
        for run in runs:
            try:
                found.append(
                    _titled(run if isinstance(run, SavedRun) else load_run(run), by_folder)
                )
            except NotFinite as error:
                if not leave_out:
                    raise UserError(f"{error}{_HOW_TO_GO_ON}") from error
                left_out.append(LeftOut(_folder(run), str(error)))
        return found

    compared = read(given)
    if compared:
        compared += [load_outside(path, title, compared[0]) for title, path in predictions.items()]
    already = {_folder(run).resolve() for run in given}
    further = _distinct(learning_curve, allow_repeats=True)
    others = read([run for run in further if _folder(run).resolve() not in already])
    return LoadedRuns(compared, others, left_out)


def align_runs(runs: LoadedRuns, force: bool, leave_out: bool) -> tuple[LoadedRuns, AlignedRuns]:
    """Put the examples of all runs into one order (`align`); runs without a value may go out.

    Raises:
        UserError: as `align` does, or less than two runs are left.
    """
    while True:
        if len(runs.compared) < 2:
            reasons = "".join(f"\n  - {found.reason}" for found in runs.left_out)
            raise UserError(
                f"Less than two runs are left to compare; the others are no use:{reasons}"
            )
        try:
            return runs, align([*runs.compared, *runs.others], force)
        except RunNotFinite as error:
            if not leave_out:
                raise UserError(f"{error}{_HOW_TO_GO_ON}") from error
            runs = runs.without(error.run, str(error))


_HOW_TO_GO_ON = " With --force the others are compared without it, and the report says so."


def _distinct(runs: Sequence[Given], allow_repeats: bool = False) -> list[Given]:
    seen: dict[Path, Given] = {}
    for run in runs:
        folder = _folder(run)
        if folder.resolve() in seen and not allow_repeats:
            raise UserError(f"The run {folder} was given twice; a run cannot be its own rival.")
        seen.setdefault(folder.resolve(), run)
    return list(seen.values())


def _folder(run: Given) -> Path:
    return run.folder if isinstance(run, SavedRun) else Path(run)


def _titled(run: SavedRun, titles: Mapping[Path, str]) -> SavedRun:
    """The run under the title that the caller gave it, else under its own."""
    title = titles.get(run.folder.resolve(), run.title)
    return replace(run, summary=run.summary | {"title": title})
