"""Token classification: F1, precision and recall of entities, sentence by sentence."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.data.tag_schemes import Span, split_tag
from toolkit.entity_metrics import count_entities, entities
from toolkit.errors import UserError
from toolkit.task_scores.columns import list_column
from toolkit.task_scores.measures import Measure, Unit, f1_of_counts, ratio
from toolkit.task_scores.predictions import Predictions, objects, read_table
from toolkit.task_scores.view import Breakdown, TaskView, length_breakdown

ENTITY_F1 = Measure("entity_f1", "entity F1", Unit.SHARE, f1_of_counts)
PRECISION = Measure("precision", "precision", Unit.SHARE, ratio)
RECALL = Measure("recall", "recall", Unit.SHARE, ratio)
# Of right, predicted and gold, those that a measure is computed from.
_COUNTS = {ENTITY_F1.key: [0, 1, 2], PRECISION.key: [0, 1], RECALL.key: [0, 2]}
_NO_ENTITY = "(no entity)"


def read(path: Path, summary: dict[str, Any]) -> Predictions:
    """Read a predictions file: `id`, `tokens`, `gold` and `predicted` tags of every sentence.

    `fields` are `tokens` (lists) and `predicted` (tuples); the truth is the tuple of gold tags.

    Raises:
        UserError: names file and row of what is wrong.
    """
    table = read_table(path, ("id", "tokens", "gold", "predicted"))
    tokens, gold, predicted = (
        list_column(table, column, path) for column in ("tokens", "gold", "predicted")
    )
    for column, tags in (("gold", gold), ("predicted", predicted)):
        for row, sentence in enumerate(tags):
            if len(sentence) != len(tokens[row]):
                raise UserError(
                    f"{path}, row {row}: {len(sentence)} tags in '{column}' for "
                    f"{len(tokens[row])} tokens; each needs its own."
                )
        _check_tags(column, tags, path)
    space = "" if summary["data"].get("tokens") == "characters" else " "
    return Predictions(
        ids=[str(value) for value in table["id"].to_pylist()],
        inputs=[space.join(sentence) for sentence in tokens],
        images=None,
        truth=[tuple(sentence) for sentence in gold],
        fields={
            "tokens": objects(tokens),
            "predicted": objects([tuple(sentence) for sentence in predicted]),
        },
    )


def _check_tags(column: str, tags: Sequence[Sequence[str]], path: Path) -> None:
    for tag in {tag for sentence in tags for tag in sentence}:
        try:
            split_tag(tag)
        except ValueError as error:
            row = next(row for row, sentence in enumerate(tags) if tag in sentence)
            raise UserError(f"{path}, row {row}: in '{column}' {error}.") from error


def view(task: str, runs: Sequence[Predictions], summaries: Sequence[dict[str, Any]]) -> TaskView:
    """Runs on the same sentences in the same order.

    A sentence is right where its entities are, spans and types, and no other is predicted.
    """
    first = runs[0]
    tokens = list(first.fields["tokens"])
    truth: list[Any] = first.truth
    spans = functools.cache(_spans)  # runs agree on most sentences
    gold = [spans(tags) for tags in truth]
    predicted = [[spans(tags) for tags in run.fields["predicted"]] for run in runs]
    counts = [count_entities(gold, found).astype(np.float64) for found in predicted]

    def statistics(key: str, run: int) -> NDArray[np.float64]:
        return counts[run][:, _COUNTS[key]]

    # [runs, sentences]: F1 of a sentence alone, where nothing to find and nothing found is right.
    nothing = np.stack([(count[:, 1] == 0) & (count[:, 2] == 0) for count in counts])
    quality = np.where(nothing, 1.0, np.stack([f1_of_counts(count) for count in counts]))
    space = "" if summaries[0]["data"].get("tokens") == "characters" else " "
    lengths = np.array([len(sentence) for sentence in tokens])
    unit = "characters" if space == "" else "tokens"
    return TaskView(
        task=task,
        noun="sentences",
        measures=[ENTITY_F1, PRECISION, RECALL],
        statistics=statistics,
        truth=_in_words(tokens, gold, space),
        answers=[_in_words(tokens, found, space) for found in predicted],
        quality=quality,
        quality_label="F1 of the sentence's entities (1 where there is nothing to find and "
        "nothing was found)",
        right=quality == 1,
        right_means="all entities of the sentence found, and no other",
        breakdowns=[
            _by_type(gold, predicted),
            length_breakdown(
                statistics, ENTITY_F1, len(runs), lengths, f"length of the sentence in {unit}"
            ),
        ],
        facts=_facts(gold),
        single_answers={
            place: _NO_ENTITY for place, count in enumerate(counts) if not count[:, 1].any()
        },
    )


def _spans(tags: tuple[str, ...]) -> list[Span]:
    return entities([tags])[0]


def _in_words(
    tokens: Sequence[Sequence[str]], spans: Sequence[Sequence[Span]], space: str
) -> list[str]:
    """The entities of every sentence, such as "上海 LOC; 王明 PER"."""
    return [
        "; ".join(f"{space.join(sentence[s.start : s.stop])} {s.kind}" for s in found) or _NO_ENTITY
        for sentence, found in zip(tokens, spans, strict=True)
    ]


def _by_type(
    gold: Sequence[Sequence[Span]], predicted: Sequence[Sequence[Sequence[Span]]]
) -> Breakdown:
    there = _kinds(gold)
    found = [_kinds(run) for run in predicted]
    right = [
        _kinds(set(true) & set(spans) for true, spans in zip(gold, run, strict=True))
        for run in predicted
    ]
    kinds = sorted(there.keys() | set().union(*found))
    counts = np.array(
        [
            [[hits[kind], spans[kind], there[kind]] for kind in kinds]
            for hits, spans in zip(right, found, strict=True)
        ],
        dtype=np.float64,
    ).reshape(len(predicted), len(kinds), 3)
    return Breakdown(
        title="By type of entity",
        note="F1 of the entities of one type alone; the numbers count entities to be found, not "
        "sentences.",
        measure=ENTITY_F1,
        label=ENTITY_F1.label,
        names=kinds,
        examples=[there[kind] for kind in kinds],
        values=f1_of_counts(counts).T,
    )


def _kinds(rows: Iterable[Iterable[Span]]) -> Counter[str]:
    return Counter(span.kind for spans in rows for span in spans)


def _facts(gold: Sequence[Sequence[Span]]) -> list[str]:
    kinds = _kinds(gold)
    empty = sum(not spans for spans in gold)
    listed = ", ".join(f"{kind} {count:,}" for kind, count in sorted(kinds.items())) or "none"
    return [f"Entities in the test set: {listed}; {empty:,} of {len(gold):,} sentences have none."]
