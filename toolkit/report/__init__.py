"""Reports of a comparison: Markdown, JSON and a table for the terminal, all from one content."""

from toolkit.report.content import Report, build_report
from toolkit.report.document import as_document, write_json
from toolkit.report.markdown import render_markdown, write_report
from toolkit.report.terminal import print_comparison

__all__ = [
    "Report",
    "as_document",
    "build_report",
    "print_comparison",
    "render_markdown",
    "write_json",
    "write_report",
]
