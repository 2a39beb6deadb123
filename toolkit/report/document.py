"""A report as plain JSON values, for programs that read on."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolkit.comparison.compare import Comparison, Row
from toolkit.comparison.pairs import ALPHA, Difference, Pair
from toolkit.disk import write_whole
from toolkit.json_values import without_nan
from toolkit.report.content import Report
from toolkit.report.facts import Fact
from toolkit.report.sections.comparability import statements
from toolkit.report.sections.statistics import notes
from toolkit.stats import Estimate, Interval
from toolkit.task_scores.view import Breakdown

SCHEMA_VERSION = 2


def as_json(report: Report) -> dict[str, Any]:
    """Everything the report prints, with exact numbers; no NaN, so any JSON reader takes it."""
    comparison = report.comparison
    document = {
        "schema_version": SCHEMA_VERSION,
        "title": report.title,
        "verdict": asdict(report.verdict) | _winner(comparison),
        "note": report.note,
        "missing": report.missing,
        "comparability": {
            "forced": comparison.forced,
            "cautions": comparison.cautions,
            "statements": statements(report),
            "times_may_be_ranked": comparison.same_machine,
            "speeds_may_be_ranked": comparison.same_machine and comparison.same_padding,
        },
        "test_set": {
            "examples": comparison.n,
            "kind": comparison.view.noun,
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
        "methods": [_row(comparison, row) for row in comparison.rows],
        "pairs": [_pair(comparison, pair) for pair in comparison.pairs],
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
        "targets": _targets(report),
        "implementations": _twins(report),
        "learning_curve": _learning_curve(comparison),
        "breakdowns": [_breakdown(comparison, found) for found in comparison.view.breakdowns],
        "examples": _examples(report),
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
    text = json.dumps(as_json(report), ensure_ascii=False, indent=2, allow_nan=False)
    write_whole(path, text + "\n")
    return path


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    if interval is None:
        return None
    return {"low": interval.low, "high": interval.high, "method": interval.method}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "interval": _interval(estimate.interval),
        "standard_error": estimate.standard_error,
    }


def _winner(comparison: Comparison) -> dict[str, Any]:
    """The verdict for programs: the winner, if there is one, and whom the best was held against."""
    against = [pair for pair in comparison.pairs if pair.first == 0]

    def titles(significant: bool) -> list[str]:
        found = [pair.second for pair in against if pair.significant is significant]
        return [comparison.rows[place].title for place in found]

    separated = titles(significant=False) == []
    return {
        "winner": comparison.rows[0].title if separated else None,
        "best": comparison.rows[0].title,
        "better_than": titles(significant=True),
        "not_separated_from": titles(significant=False),
    }


def _row(comparison: Comparison, row: Row) -> dict[str, Any]:
    return {
        "title": row.title,
        "estimates": {key: _estimate(found) for key, found in row.estimates.items()},
        "values_by_seed": {
            key: dict(zip(map(str, row.method.seeds), values, strict=True))
            for key, values in row.values.items()
        },
        "interval_over_seeds": _interval(row.over_seeds),
        "seed_matters": row.seed_matters,
        "best_other": comparison.rows[row.best_other].title,
        "p_best_other_holm": row.p_best_other,
        "significantly_best": row.significantly_best,
        "runs": [
            {
                "run_id": run.run_id,
                "recipe": run.summary.get("recipe"),
                "seed": run.seed,
                "command": run.summary.get("command"),
                "max_seconds": run.max_seconds,
                **{name: run.section(name) for name in ("model", "data", "training",
                                                        "environment")},
                "signatures": {
                    name: metric.get("signature")
                    for name, metric in run.measured.items()
                    if isinstance(metric, dict) and metric.get("signature")
                },
            }
            for run in row.method.runs
        ],
    }  # fmt: skip


def _pair(comparison: Comparison, pair: Pair) -> dict[str, Any]:
    return {
        "first": comparison.rows[pair.first].title,
        "second": comparison.rows[pair.second].title,
        "mean_counts": None
        if pair.mean_counts is None
        else dict(
            zip(
                ("both_right", "only_first", "only_second", "both_wrong"),
                pair.mean_counts,
                strict=True,
            )
        ),
        "differences": {key: _difference(found) for key, found in pair.differences.items()},
        "p_holm": pair.p_holm,
        "significant": pair.significant,
    }


def _difference(found: Difference) -> dict[str, Any]:
    over = found.over_seeds
    over_seeds = None
    if over is not None:
        over_seeds = {
            "seeds_and_examples": {
                "interval": _interval(over.both.interval),
                "p": over.both.p_value,
                "degrees_of_freedom": min(over.both.degrees_of_freedom, 1e9),
            },
            "seeds": over.seeds
            and {"interval": _interval(over.seeds.interval), "p": over.seeds.p_value},
            "nested_bootstrap": {"interval": _interval(over.nested)},
        }
    return {
        "value": found.value,
        "interval": _interval(found.interval),
        "standard_error": found.standard_error,
        "test": found.test,
        "p_examples": found.p_examples,
        "p_sacrebleu": found.p_sacrebleu,
        "over_seeds": over_seeds,
        "p": found.p_value,
    }


def _targets(report: Report) -> dict[str, Any] | None:
    found = report.targets
    if found is None:
        return None
    if found.left_out is not None:
        return {"left_out": found.left_out}
    titles = [row.title for row in report.comparison.rows]
    return {
        "metric": f"validation {found.metric}",
        "reached": [
            {
                "target": target,
                "by": {
                    title: None
                    if one is None
                    else [None if point is None else asdict(point) for point in one.points]
                    for title, one in zip(titles, reached, strict=True)
                },
            }
            for target, reached in found.reached.items()
        ],
    }


def _twins(report: Report) -> list[dict[str, Any]]:
    rows = report.comparison.rows
    return [
        {
            "first": rows[twins.first].title,
            "second": rows[twins.second].title,
            "median_speed_ratio": twins.median_speed_ratio,
            "seeds": [asdict(seed) for seed in twins.seeds],
        }
        for twins in report.twins
    ]


def _learning_curve(comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {
            "name": series.name,
            "points": [
                {
                    "train_examples": point.train_examples,
                    "runs": [
                        {"run_id": run.run_id, "seed": run.seed,
                         "command": run.summary.get("command")}
                        for run in point.runs
                    ],
                    comparison.primary.key: _estimate(point.estimate),
                }
                for point in series.points
            ],
        }
        for series in comparison.curve
    ]  # fmt: skip


def _breakdown(comparison: Comparison, found: Breakdown) -> dict[str, Any]:
    return {
        "title": found.title,
        "measure": found.label,
        "note": found.note,
        "parts": [
            {
                "name": name,
                "examples": examples,
                "values": {
                    row.title: float(values[row.method.places].mean()) for row in comparison.rows
                },
            }
            for name, examples, values in zip(
                found.names, found.examples, found.values, strict=True
            )
        ],
    }


def _facts(facts: list[Fact]) -> dict[str, Any]:
    return {fact.name: fact.value if fact.value is not None else fact.by_run for fact in facts}


def _examples(report: Report) -> dict[str, Any] | list[dict[str, Any]]:
    if report.examples is None:
        return {"left_out": report.examples_left_out}
    return [asdict(group) for group in report.examples]
