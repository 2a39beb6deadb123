"""A report as Markdown with its pictures beside it."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2

from toolkit import plots
from toolkit.compare import Comparison
from toolkit.errors import UserError
from toolkit.report import wording
from toolkit.report.content import Report
from toolkit.report.document import write_json

ACCURACY_PICTURE = "accuracy.svg"
CURVE_PICTURE = "learning_curve.svg"
_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~$])")


def escape(text: object) -> str:
    """Text that Markdown shows as it is: no emphasis, table cell, tag or line break comes of it."""
    line = " ".join(str(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", line)


def render_markdown(report: Report) -> str:
    """The report as Markdown; it refers to the pictures that `write_report` puts beside it."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("toolkit.report"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown, not HTML: what others wrote goes through `md`
    )
    environment.filters["md"] = escape
    template = environment.get_template("report.md.j2")
    text = template.render(
        report=report,
        comparison=report.comparison,
        rows=report.comparison.rows,
        words=wording,
        accuracy_picture=ACCURACY_PICTURE,
        curve_picture=CURVE_PICTURE,
    )
    return re.sub(r"\n{3,}", "\n\n", text)


def write_report(report: Report, folder: str | Path) -> Path:
    """Write report.md, report.json and the pictures into a folder; returns the path of report.md.

    Raises UserError when the folder cannot be written. Files of an earlier report are replaced.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _draw(report.comparison, folder)
        write_json(report, folder / "report.json")
        path = folder / "report.md"
        path.write_text(render_markdown(report), encoding="utf-8")
    except OSError as error:
        raise UserError(f"The report cannot be written to {folder}: {error}") from error
    return path


def _draw(comparison: Comparison, folder: Path) -> None:
    bars = [
        plots.Bar(
            row.title,
            row.accuracy.value,
            row.accuracy.interval.low,
            row.accuracy.interval.high,
        )
        for row in comparison.rows
    ]
    plots.save_figure(plots.forest_plot(bars), folder / ACCURACY_PICTURE)
    if not comparison.curve:
        # A picture of an earlier report must not stay beside one that has no curve.
        (folder / CURVE_PICTURE).unlink(missing_ok=True)
        return
    series = [
        plots.Series(
            line.name,
            [point.train_examples for point in line.points],
            [point.accuracy.value for point in line.points],
            [point.accuracy.interval.low for point in line.points],
            [point.accuracy.interval.high for point in line.points],
        )
        for line in comparison.curve
    ]
    plots.save_figure(plots.learning_curve(series), folder / CURVE_PICTURE)
