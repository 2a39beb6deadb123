"""A report as plain JSON values, for programs that read on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from toolkit.compare import ALPHA, Comparison, Pair, Row
from toolkit.json_values import without_nan
from toolkit.report.content import Fact, Report
from toolkit.report.example_kind import TEXTS
from toolkit.stats import Estimate

SCHEMA_VERSION = 1


def as_document(report: Report) -> dict[str, Any]:
    """Everything the report prints, with exact numbers; no NaN, so any JSON reader takes it."""
    comparison = report.comparison
    return {
        "schema_version": SCHEMA_VERSION,
        "title": report.title,
        "verdict": {"headline": report.verdict.headline, "details": report.verdict.details},
        "comparability": {
            "forced": comparison.forced,
            "cautions": comparison.cautions,
            "statements": report.comparability,
        },
        "test_set": {
            "examples": comparison.n,
            "kind": report.kind.plural,
            "label_counts": comparison.label_counts(),
            "facts": _facts(report.data_facts),
        },
        "runs": [_row(comparison, row) for row in comparison.rows],
        "pairs": [_pair(comparison, pair) for pair in comparison.pairs],
        "statistics": {
            "alpha": round(ALPHA, 10),
            "adjustment": "holm",
            "pairs_adjusted_over": len(comparison.pairs),
            "bootstrap": {
                "draws": comparison.bootstrap_draws,
                "seed": comparison.bootstrap_seed,
            },
            "notes": report.notes,
        },
        "time_to_accuracy": _time_to_accuracy(report),
        "learning_curve": [
            {
                "name": series.name,
                "points": [
                    {
                        "train_examples": point.train_examples,
                        "run_id": point.run.run_id,
                        "command": point.run.summary.get("command"),
                        "accuracy": _estimate(point.accuracy),
                    }
                    for point in series.points
                ],
            }
            for series in comparison.curve
        ],
        "examples": _examples(report),
        "environment": _facts(report.machine_facts),
        "command": report.command,
    }


def write_json(report: Report, path: str | Path) -> Path:
    """Write the report as UTF-8 JSON, creating the folder; returns the path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(as_document(report), ensure_ascii=False, indent=2, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _estimate(estimate: Estimate) -> dict[str, Any]:
    document: dict[str, Any] = {
        "value": estimate.value,
        "interval": [estimate.interval.low, estimate.interval.high],
        "interval_method": estimate.interval.method,
    }
    if estimate.standard_error is not None:
        document["standard_error"] = estimate.standard_error
    return document


def _row(comparison: Comparison, row: Row) -> dict[str, Any]:
    run = row.run
    return {
        "title": row.title,
        "run_id": run.run_id,
        "recipe": run.summary.get("recipe"),
        "seed": run.summary.get("seed"),
        "command": run.summary.get("command"),
        "max_seconds": run.max_seconds,
        **{
            name: without_nan(run.section(name))
            for name in ("model", "data", "training", "environment")
        },
        "accuracy": _estimate(row.accuracy),
        "macro_f1": _estimate(row.macro_f1),
        "signatures": {
            name: metric.get("signature")
            for name, metric in run.section("test").items()
            if isinstance(metric, dict)
        },
        "best_other": comparison.rows[row.best_other].title,
        "p_best_other_holm": row.p_best_other,
        "significantly_best": row.significantly_best,
    }


def _pair(comparison: Comparison, pair: Pair) -> dict[str, Any]:
    return {
        "first": comparison.rows[pair.first].title,
        "second": comparison.rows[pair.second].title,
        "counts": {
            "both_right": pair.counts.both_right,
            "only_first_right": pair.counts.only_first,
            "only_second_right": pair.counts.only_second,
            "both_wrong": pair.counts.both_wrong,
        },
        "accuracy_difference": {
            "value": pair.counts.difference,
            "interval": [pair.interval.low, pair.interval.high],
            "interval_method": pair.interval.method,
        },
        "macro_f1_difference": _estimate(pair.macro_f1_difference),
        "p_mcnemar_exact": pair.p_value,
        "p_holm": pair.p_holm,
        "significant": pair.significant,
    }


def _time_to_accuracy(report: Report) -> dict[str, Any] | None:
    times = report.time_to_accuracy
    if times is None:
        return None
    if times.left_out is not None:
        return {"left_out": times.left_out}
    titles = [row.title for row in report.comparison.rows]
    return {
        f"{level:g}": dict(zip(titles, seconds, strict=True))
        for level, seconds in times.seconds.items()
    }


def _facts(facts: list[Fact]) -> dict[str, Any]:
    return {fact.name: fact.value if fact.value is not None else fact.by_run for fact in facts}


def _examples(report: Report) -> dict[str, Any]:
    if report.examples is None:
        return {"left_out": report.examples_left_out}
    return {
        "how": report.examples.how,
        "examples": [
            {
                "id": example.id,
                "text" if report.kind is TEXTS else "image": example.shown,
                "label": example.label,
                "answers": [
                    {
                        "title": answer.title,
                        "label": answer.label,
                        "right": answer.right,
                        "confidence": answer.confidence,
                    }
                    for answer in example.answers
                ],
            }
            for example in report.examples.examples
        ],
    }
