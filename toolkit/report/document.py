"""A report as plain JSON values, for programs that read on."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolkit.comparison.pairs import ALPHA
from toolkit.disk import write_whole
from toolkit.json_values import without_nan
from toolkit.report.content import Report
from toolkit.report.facts import Fact
from toolkit.report.json_parts.differences import (
    breakdown_values,
    confusions_values,
    examples_values,
)
from toolkit.report.json_parts.methods import method_values, pair_values, winner_values
from toolkit.report.json_parts.training import (
    curves_values,
    implementations_values,
    learning_curve_values,
    targets_values,
)
from toolkit.report.json_text import json_text
from toolkit.report.sections.comparability import differing_settings, statements
from toolkit.report.sections.statistics import notes

SCHEMA_VERSION = 2


def as_json(report: Report) -> dict[str, Any]:
    """Everything the report prints, with exact numbers; no NaN, so any JSON reader takes it."""
    comparison = report.comparison
    document = {
        "schema_version": SCHEMA_VERSION,
        "title": report.title,
        "verdict": asdict(report.verdict) | winner_values(comparison),
        "note": report.note,
        "missing": report.missing,
        "comparability": {
            "forced": comparison.forced,
            "cautions": comparison.cautions,
            "statements": statements(report),
            "settings_that_differ": differing_settings(comparison),
            "times_may_be_ranked": comparison.same_machine,
            "speeds_may_be_ranked": comparison.same_machine and comparison.same_padding,
        },
        "test_set": {
            "examples": comparison.n,
            "kind": comparison.view.noun,
            "without_a_model": comparison.view.chance
            and dict(zip(("what", "value"), comparison.view.chance, strict=True)),
            "facts": _facts(report.data_facts),
        },
        "measures": [
            {
                "key": measure.key,
                "label": measure.label,
                "unit": measure.unit.value,
                "higher_is_better": measure.higher_is_better,
                "decides": measure is comparison.primary,
            }
            for measure in comparison.view.measures
        ],
        "methods": [method_values(comparison, row) for row in comparison.rows],
        "pairs": [pair_values(comparison, pair) for pair in comparison.pairs],
        "statistics": {
            "alpha": round(ALPHA, 10),
            "adjustment": "holm",
            "pairs_adjusted_over": len(comparison.pairs),
            "bootstrap": {
                "draws": comparison.bootstrap_draws,
                "seed": comparison.bootstrap_seed,
            },
            "notes": notes(comparison),
        },
        "training_curves": curves_values(comparison),
        "targets": targets_values(report),
        "implementations": implementations_values(report),
        "learning_curve": learning_curve_values(comparison),
        "confusions": confusions_values(comparison),
        "breakdowns": [breakdown_values(comparison, found) for found in comparison.view.breakdowns],
        "examples": examples_values(report),
        "published": [
            {
                "title": comparison.rows[found.row].title,
                "metric": found.measure.key,
                "value": found.value,
                "published": found.published,
                "distance": found.distance,
            }
            for found in report.published
        ],
        "environment": _facts(report.machine_facts),
        "report_made_with": _facts(report.report_facts),
        "command": report.command,
    }
    plain: dict[str, Any] = without_nan(document)
    return plain


def write_json(report: Report, path: str | Path) -> Path:
    """Write the report as UTF-8 JSON, creating the folder; returns the path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json_text(as_json(report)))
    return path


def _facts(facts: list[Fact]) -> dict[str, Any]:
    return {fact.name: fact.value if fact.value is not None else fact.by_run for fact in facts}
