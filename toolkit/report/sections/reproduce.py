"""How to make the runs and the report again, what they ran on, and what others have published."""

from __future__ import annotations

import hashlib

from toolkit.comparison.saved_run import SavedRun
from toolkit.report import wording
from toolkit.report.blocks import Block, Code, Details, Paragraph, Section, Table
from toolkit.report.content import Report
from toolkit.report.facts import titled_runs


def section(report: Report) -> Section:
    """Published numbers, commands, facts."""
    comparison = report.comparison
    blocks: list[Block] = []
    if report.published:
        blocks.append(Section("Published numbers", _published(report), level=3))
    if report.command:
        blocks += [Paragraph("This report:"), Code(report.command)]
    blocks.append(Paragraph("Its runs:"))
    lines = []
    for title, run in titled_runs(comparison):
        command = _command(run)
        lines += [f"# {' '.join(title.split())}", command]
    blocks.append(Code("\n".join(lines)))
    if further := comparison.further_curve_runs():
        commands = (run.summary.get("command") or "(command not recorded)" for run in further)
        blocks += [
            Paragraph("The other points of the learning curve:"),
            Code("\n".join(command.replace("\n", " ") for command in commands)),
        ]
    blocks.append(Details("Data, hardware, versions and signatures", [_facts(report)]))
    return Section("Reproduce", blocks)


def _command(run: SavedRun) -> str:
    """What made a run; of a file of predictions its name and hash."""
    if (file := file_of_predictions(run)) is not None:
        return f"(file of predictions {file['name']}, SHA-256 {file['sha256']})"
    return (run.summary.get("command") or "(command not recorded)").replace("\n", " ")


def file_of_predictions(run: SavedRun) -> dict[str, str] | None:
    """Name and hash of what stands for a run of somebody else's system; None for our own."""
    if not run.folder.is_file():
        return None
    digest = hashlib.sha256(run.folder.read_bytes()).hexdigest()
    return {"name": run.folder.name, "sha256": digest}


def _published(report: Report) -> list[Block]:
    rows = []
    for found in report.published:
        published, measure = found.published, found.measure
        rows.append(
            [
                report.comparison.rows[found.row].title,
                str(published["split"]),
                wording.value(measure, found.value),
                wording.value(measure, float(published["value"])),
                wording.difference(measure, found.distance),
                str(published.get("setting", "")),
                str(published.get("source", "")),
            ]
        )
    header = ["method", "on", "here", "published", "distance", "published setting", "source"]
    caption = (
        "A distance is what is left unexplained between another setting and ours, not a defect by "
        "itself: read the settings side by side."
    )
    return [Table(header, rows, numeric=(2, 3, 4)), Paragraph(caption, tone="caption")]


def _facts(report: Report) -> Table:
    rows = []
    for fact in report.data_facts + report.machine_facts + report.report_facts:
        if fact.value is not None:
            rows.append([fact.name, fact.value])
        else:
            listed = "; ".join(f"{title}: {value}" for title, value in fact.by_run.items())
            rows.append([fact.name, listed])
    for name, metric in report.comparison.runs[0].measured.items():
        if isinstance(metric, dict) and metric.get("signature"):
            rows.append([f"signature of {name}", str(metric["signature"])])
    return Table(["recorded", "value"], rows)
