"""The whole report as blocks, in the order in which it is to be believed."""

from __future__ import annotations

from toolkit.report.blocks import Block, Bullets, Document, Paragraph
from toolkit.report.content import Report
from toolkit.report.sections import (
    comparability,
    curves,
    differences,
    reproduce,
    results,
    statistics,
)


def as_blocks(report: Report) -> Document:
    """Verdict, comparability, tables, statistics, curves, differences, how to repeat it."""
    return Document(
        report.title,
        blocks=[
            *_top(report),
            comparability.section(report),
            results.section(report),
            statistics.section(report),
            *curves.sections(report),
            differences.section(report),
            reproduce.section(report),
        ],
    )


def _top(report: Report) -> list[Block]:
    blocks: list[Block] = []
    if report.comparison.forced:
        blocks.append(
            Paragraph("this comparison was forced and is not a fair one.", tone="warning")
        )
        blocks.append(Bullets(report.comparison.forced))
    blocks.append(Paragraph(report.verdict.headline, tone="lead"))
    if report.verdict.details:
        blocks.append(Bullets(report.verdict.details))
    if report.note:
        blocks.append(Paragraph(report.note, tone="note"))
    blocks += [Paragraph(sentence, tone="warning") for sentence in report.missing]
    return blocks
