"""Reports of a comparison: HTML, Markdown, JSON and a table for the terminal, from one content."""

from __future__ import annotations

from pathlib import Path

from toolkit.progress import working
from toolkit.report.content import Report, build_report
from toolkit.report.document import as_json, write_json
from toolkit.report.files import write_document
from toolkit.report.layout import as_blocks
from toolkit.report.terminal import print_report

__all__ = [
    "Report",
    "as_blocks",
    "as_json",
    "build_report",
    "print_report",
    "write_json",
    "write_report",
]


def write_report(report: Report, folder: str | Path) -> Path:
    """Write report.html, report.md, report.json and the pictures; returns the path of report.html.

    Raises:
        UserError: the folder cannot be written.
    """
    with working("drawing the report"):
        markdown = write_document(as_blocks(report), folder, as_json(report))
    return markdown.with_name("report.html")
