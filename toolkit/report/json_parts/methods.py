"""Methods, what they reached and cost, and every pair of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from toolkit.comparison.compare import Comparison, Row
from toolkit.comparison.differences import Difference
from toolkit.comparison.pairs import Pair
from toolkit.comparison.saved_run import SavedRun
from toolkit.report.cost import COLUMNS, values_of
from toolkit.report.needed import needed
from toolkit.report.sections.differences import better_counts
from toolkit.report.sections.reproduce import file_of_predictions
from toolkit.stats import Estimate, Interval


def winner_values(comparison: Comparison) -> dict[str, Any]:
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


def method_values(comparison: Comparison, row: Row) -> dict[str, Any]:
    """One method, with its runs."""
    return {
        "title": row.title,
        "estimates": {key: estimate_values(found) for key, found in row.estimates.items()},
        "values_by_seed": {
            key: dict(zip(map(str, row.method.seeds), values, strict=True))
            for key, values in row.values.items()
        },
        "interval_over_seeds": _interval(row.over_seeds),
        "seed_matters": row.seed_matters,
        "best_other": comparison.rows[row.best_other].title,
        "p_best_other_holm": row.p_best_other,
        "significantly_best": row.significantly_best,
        "costs": _costs(row),
        "runs": [_run(run) for run in row.method.runs],
    }


def _costs(row: Row) -> dict[str, Any]:
    """What the table of costs shows: means over seeds and their range, in SI units and bytes."""
    found = {column.key: values_of(row, column) for column in COLUMNS}
    return {
        key: {"mean": sum(values) / len(values), "low": min(values), "high": max(values)}
        for key, values in found.items()
        if values
    }


def _run(run: SavedRun) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "recipe": run.summary.get("recipe"),
        "seed": run.seed,
        "command": run.summary.get("command"),
        "file_of_predictions": file_of_predictions(run),
        "max_seconds": run.max_seconds,
        **{name: run.section(name) for name in ("model", "data", "training", "environment")},
        "signatures": {
            name: metric.get("signature")
            for name, metric in run.measured.items()
            if isinstance(metric, dict) and metric.get("signature")
        },
    }


def pair_values(comparison: Comparison, pair: Pair) -> dict[str, Any]:
    """One pair: all measures, and what it would take to tell the two apart."""
    better = better_counts(comparison, pair)
    lacking = None if pair.significant else asdict(needed(comparison, pair))
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
        "better_counts": dict(zip(("first", "second", "equal"), better, strict=True)),
        "needed": lacking,
        "differences": {key: _difference(found) for key, found in pair.differences.items()},
        "p_holm": pair.p_holm,
        "significant": pair.significant,
    }


def _difference(found: Difference) -> dict[str, Any]:
    decides = found.measure.advantages(found.deciding_interval)
    over, over_seeds = found.over_seeds, None
    if over is not None:
        over_seeds = {
            "seeds_and_examples": {
                "interval": _interval(over.both.interval),
                "p": over.both.p_value,
                "degrees_of_freedom": min(over.both.degrees_of_freedom, 1e9),
            },
            "seeds": over.seeds
            and {"interval": _interval(over.seeds.interval), "p": over.seeds.p_value},
            "paired_by_seed": over.paired,
            "nested_bootstrap": {"interval": _interval(over.nested)},
        }
    return {
        "value": found.value,
        "better_by": {"value": found.advantage, "low": decides.low, "high": decides.high},
        "interval": _interval(found.interval),
        "standard_error": found.standard_error,
        "test": found.test,
        "p_examples": found.p_examples,
        "p_examples_monte_carlo_error": found.p_examples_error,
        "draws": found.draws,
        "p_sacrebleu": found.p_sacrebleu,
        "over_seeds": over_seeds,
        "p": found.p_value,
    }


def estimate_values(estimate: Estimate) -> dict[str, Any]:
    """A value with its interval over test examples."""
    return {
        "value": estimate.value,
        "interval": _interval(estimate.interval),
        "standard_error": estimate.standard_error,
    }


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    if interval is None:
        return None
    return {"low": interval.low, "high": interval.high, "method": interval.method}
