"""Curves of training, times to a target, two implementations of one thing, learning curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolkit.comparison.compare import Comparison
from toolkit.comparison.targets import Reached, Targets, is_share
from toolkit.comparison.twins import Twins
from toolkit.plots import Series, learning_curve, seed_curves
from toolkit.report import wording
from toolkit.report.blocks import Block, Cell, Figure, Paragraph, Section, Table
from toolkit.report.content import Report
from toolkit.report.curve_data import CurvePicture, curve_pictures
from toolkit.report.verdict import twins_in_words
from toolkit.task_scores.measures import Unit

_AXIS_NAMES = {"step": "optimizer step", "seconds": "seconds of training", "joules": "joules"}
_AXIS_WRITTEN: dict[str, Callable[[float], str]] = {
    "seconds": wording.seconds,
    "joules": wording.energy,
}


def sections(report: Report) -> list[Section]:
    """Those that the runs recorded something for."""
    found = []
    if blocks := [*_training(report.comparison), *_targets(report)]:
        found.append(Section("Training curves", blocks))
    if report.twins:
        found.append(Section("Two implementations of the same model", _twins(report)))
    if report.comparison.curve:
        found.append(Section("Learning curve", _learning_curve(report.comparison)))
    return found


def _training(comparison: Comparison) -> list[Block]:
    return [_figure(picture) for picture in curve_pictures(comparison)]


def _figure(picture: CurvePicture) -> Figure:
    """One picture with a line per method."""
    name, axis_name = wording.capitalised(picture.value), _AXIS_NAMES[picture.axis]
    caption = f"{name} against {axis_name}."
    if any(band.runs > 1 for band in picture.bands):
        caption += " Lines are means over seeds; bands reach from the lowest to the highest seed."
        if picture.axis != "step":
            logged = "evaluation" if picture.value.startswith("validation") else "logged step"
            caption += f" Each point is at the mean {picture.axis} of the seeds at one {logged}."
    return Figure(
        picture.file,
        lambda: seed_curves(
            picture.bands, axis_name, picture.value, target=picture.target, percent=picture.share
        ),
        alt=f"{name} of {wording.listed([band.name for band in picture.bands])} against "
        f"{axis_name}",
        caption=caption,
    )


def _targets(report: Report) -> list[Block]:
    found = report.targets
    if found is None:
        return []
    if found.left_out is not None:
        return [Paragraph(found.left_out, tone="note")]
    axes = found.axes()
    if not report.comparison.same_machine:
        axes = [axis for axis in axes if axis == "step"]
    metric = wording.metric(found.metric)
    header = ["method", *(_target(found, target) for target in found.reached)]
    rows = [
        [Cell(row.title), *(_reached(reached[place], axes) for reached in found.reached.values())]
        for place, row in enumerate(report.comparison.rows)
    ]
    several = report.comparison.several_seeds
    not_reached = "not reached by every seed" if several else "not reached"
    caption = (
        f"Where an evaluation first reached this validation {metric}: "
        + wording.listed([_AXIS_NAMES[axis] for axis in axes])
        + f"; {wording.MISSING}: {not_reached}, or not recorded. Evaluations are not counted as "
        "time, and a run that is evaluated seldom shows it late."
    )
    if found.common is not None:
        caption += f" {_target(found, found.common)} is the best value that all of them reached."
    return [
        Section(
            "Time to target",
            [
                Table(header, rows, numeric=range(1, len(header))),
                Paragraph(caption, tone="caption"),
            ],
            level=3,
        )
    ]


def _target(found: Targets, target: float) -> str:
    return wording.level(round(target, 4)) if is_share(found.metric) else wording.plain(target)


def _reached(one: Reached | None, axes: Sequence[str]) -> Cell:
    shown = []
    for axis in axes:
        places = None if one is None else one.along(axis)
        if places:
            shown.append(_at(axis, places))
    if not shown:
        return Cell(wording.MISSING)
    # Time says more than steps, whose cost differs between models.
    return Cell(shown[-1], detail=", ".join(shown[:-1]) or None)


def _twins(report: Report) -> list[Block]:
    blocks: list[Block] = []
    for twins in report.twins:
        blocks += [Paragraph(twins_in_words(report.comparison, twins)), _twins_table(twins)]
    blocks.append(
        Paragraph(
            "Largest differences of the training loss and of the validation metric that chose the "
            "model, at steps that both logged; for how many steps from the start the loss is the "
            "same to the last bit; how many test answers differ. Speed ratio: real tokens (or "
            "examples) per second of the first over the second, of two runs one after the other.",
            tone="caption",
        )
    )
    return blocks


def _twins_table(twins: Twins) -> Table:
    header = [
        "seed", "loss apart", "equal from the start", "validation apart", "other answers",
        "speed ratio",
    ]  # fmt: skip
    rows = []
    for seed in twins.seeds:
        loss, validation, ratio = seed.loss, seed.validation, seed.speed_ratio
        rows.append(
            [
                str(seed.seed),
                wording.MISSING if loss is None else wording.tiny(loss.difference),
                wording.MISSING if loss is None else f"{loss.equal:,} of {loss.steps:,} steps",
                wording.MISSING if validation is None else wording.tiny(validation.difference),
                wording.count(seed.other_answers),
                wording.MISSING if ratio is None else f"{ratio:.2f}",
            ]
        )
    return Table(header, rows, numeric=range(len(header)))


def _at(axis: str, places: Sequence[float]) -> str:
    """Steps from the first to the last seed's; of seconds and joules the mean."""
    if axis == "step":
        low, high = min(places), max(places)
        return f"step {low:,.0f}" if low == high else f"step {low:,.0f}–{high:,.0f}"
    return _AXIS_WRITTEN[axis](sum(places) / len(places))


def _learning_curve(comparison: Comparison) -> list[Block]:
    measure = comparison.primary
    numbers = {row.title: number for number, row in enumerate(comparison.rows)}
    series = [
        Series(
            line.name,
            [point.train_examples for point in line.points],
            [point.estimate.value for point in line.points],
            [point.estimate.interval.low for point in line.points],
            [point.estimate.interval.high for point in line.points],
            number=numbers.get(line.name, len(numbers) + place),
        )
        for place, line in enumerate(comparison.curve)
    ]
    rows = []
    for size in comparison.curve_sizes():
        cells = [Cell(wording.count(size))]
        for line in comparison.curve:
            point = next((p for p in line.points if p.train_examples == size), None)
            cells.append(
                Cell(wording.MISSING)
                if point is None
                else Cell(
                    wording.value(measure, point.estimate.value),
                    detail=wording.brackets(measure, point.estimate.interval),
                )
            )
        rows.append(cells)
    header = ["training examples", *(line.name for line in comparison.curve)]
    return [
        Figure(
            "learning_curve",
            lambda: learning_curve(
                series, f"test {measure.label}", percent=measure.unit is Unit.SHARE
            ),
            alt=f"Test {measure.label} against the number of labelled training examples, one line "
            "per method",
            caption=f"How test {measure.label} grows with the number of labels (log scale); the "
            "bars are 95% intervals. The test set is the same at every point.",
        ),
        Table(header, rows, numeric=range(len(header))),
    ]
