"""What a report says, apart from how it is laid out: every format is written from this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.compare import Comparison, Pair
from toolkit.report import wording
from toolkit.report.example_kind import ExampleKind, example_kind
from toolkit.report.examples import ExampleDraw, draw_examples
from toolkit.report.time_to_accuracy import TimeToAccuracy, time_to_accuracy
from toolkit.report.verdict import Verdict, majority, verdict
from toolkit.run_results import SavedRun

# With more pairs than this, a report shows those with the best run; the rest are in report.json.
_MOST_PAIRS = 15
_VERSION_KEYS = ("python", "torch", "transformers")


@dataclass(frozen=True)
class Fact:
    """One thing that every run recorded (`value`) or that differs between them (`by_run`)."""

    name: str
    value: str | None
    by_run: dict[str, str]


@dataclass(frozen=True)
class Report:
    """A comparison with its verdict in words, the examples drawn and the facts to repeat it.

    `kind` is what the test examples are. `examples` is None when they were left out or never
    recorded; `examples_left_out` says why. `time_to_accuracy` is None where no run recorded it.
    `command` is the command that makes the report again, where it is known.
    """

    title: str
    comparison: Comparison
    kind: ExampleKind
    verdict: Verdict
    comparability: list[str]
    notes: list[str]
    shown_pairs: list[Pair]
    time_to_accuracy: TimeToAccuracy | None
    examples: ExampleDraw | None
    examples_left_out: str | None
    data_facts: list[Fact]
    machine_facts: list[Fact]
    command: str | None


def build_report(
    comparison: Comparison,
    title: str = "Comparison",
    show_examples: bool = True,
    command: str | None = None,
) -> Report:
    """Put a comparison into words and draw its examples."""
    kind, aligned = example_kind(comparison), comparison.aligned
    examples, left_out = None, None
    if not show_examples:
        left_out = f"The test {kind.plural} are left out of this report on request."
    elif aligned.texts is None and aligned.images is None:
        left_out = f"The runs recorded no test {kind.plural}."
    else:
        examples = draw_examples(comparison)
    return Report(
        title=title,
        comparison=comparison,
        kind=kind,
        verdict=verdict(comparison),
        comparability=_comparability(comparison),
        notes=_notes(comparison, kind),
        shown_pairs=_shown_pairs(comparison),
        time_to_accuracy=time_to_accuracy(comparison),
        examples=examples,
        examples_left_out=left_out,
        data_facts=_data_facts(comparison),
        machine_facts=_machine_facts(comparison),
        command=command,
    )


def _comparability(comparison: Comparison) -> list[str]:
    counts = [f"{name} {count:,}" for name, count in comparison.label_counts().items()]
    name, share = majority(comparison)
    checked = ["ids", "labels"]
    if comparison.aligned.texts is not None:
        checked.append("texts")
    if all(row.run.data_hash("test") for row in comparison.rows):
        checked.append("content hash")
    if comparison.forced:
        lines = [f"Compared on the {comparison.n:,} test examples that all runs share."]
    else:
        lines = [
            f"All runs were tested on the same {comparison.n:,} examples (same "
            f"{wording.listed(checked)}) and measured in the same way."
        ]
    lines.append(
        f"Labels in the test set: {wording.listed(counts)}. Always answering {name!r} would score "
        f"{wording.percent(share)}."
    )
    budgets = {row.run.max_seconds for row in comparison.rows}
    if len(budgets) == 1 and (budget := budgets.pop()) is not None:
        lines.append(
            f"All runs had the same budget of {budget:,g} seconds of training (evaluations do not "
            "count); how many steps that is depends on model and machine."
        )
    return lines


def _shown_pairs(comparison: Comparison) -> list[Pair]:
    if len(comparison.pairs) <= _MOST_PAIRS:
        return comparison.pairs
    return [pair for pair in comparison.pairs if pair.first == 0]


def _notes(comparison: Comparison, kind: ExampleKind) -> list[str]:
    """How the numbers in the table came about."""
    pairs = len(comparison.pairs)
    family = f"over all {pairs} pairs" if pairs > 1 else "(a single pair: nothing to adjust)"
    seeds = {row.run.summary.get("seed") for row in comparison.rows}
    seed_words = f"seed {seeds.pop()}" if len(seeds) == 1 else "each with its own seed"
    return [
        "Accuracy: Wilson's 95% interval. Macro F1: mean of F1 over all labels of the model, "
        f"percentile 95% interval of {comparison.bootstrap_draws:,} bootstrap samples of the test "
        f"examples, the same samples for all runs (seed {comparison.bootstrap_seed}); its standard "
        "error is the standard deviation of the draws.",
        f"p: exact McNemar test on the same examples, two-sided, adjusted by Holm {family}. "
        '"Best other" is the run with the highest accuracy among the others.',
        "Differences of accuracy: Bonett and Price's 95% interval for paired proportions. "
        "Intervals are those of each pair by itself; only the p values are adjusted.",
        kind.training_time,
        f"One training run per row ({seed_words}): the intervals tell how much another test set "
        "would change the numbers, not how much another seed would.",
    ]


def _fact(name: str, runs: Sequence[tuple[str, object]]) -> Fact:
    written = {title: _written(value) for title, value in runs}
    values = set(written.values())
    if len(values) == 1:
        return Fact(name, values.pop(), {})
    return Fact(name, None, written)


def _written(value: object) -> str:
    """A recorded value in words; lists and small dictionaries on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_written(part)}" for key, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(_written, value)) or "none"
    return wording.MISSING if value is None else str(value)


def _titled(comparison: Comparison) -> list[tuple[str, SavedRun]]:
    return [(row.title, row.run) for row in comparison.rows]


def _data_facts(comparison: Comparison) -> list[Fact]:
    runs = _titled(comparison)

    def of_data(key: str) -> list[tuple[str, object]]:
        return [(title, run.section("data").get(key)) for title, run in runs]

    facts = [_fact("data set", of_data("dataset"))]
    for split in ("train", "validation", "test"):
        facts.append(_fact(f"{split} examples", of_data(f"{split}_examples")))
        hashes = [(title, run.data_hash(split)) for title, run in runs]
        facts.append(_fact(f"{split} hash (SHA-256)", hashes))
    selection = [(title, run.section("training").get("selection")) for title, run in runs]
    facts.append(_fact("model kept", selection))
    return facts


def _machine_facts(comparison: Comparison) -> list[Fact]:
    runs = _titled(comparison)
    keys: dict[str, None] = {}
    for _, run in runs:
        keys.update(dict.fromkeys(run.section("environment")))
    # Hardware first: it decides what the times mean.
    ordered = [key for key in keys if key not in _VERSION_KEYS]
    ordered += [key for key in _VERSION_KEYS if key in keys]
    return [
        _fact(
            key.replace("_", " "),
            [(title, run.section("environment").get(key)) for title, run in runs],
        )
        for key in ordered
    ]
