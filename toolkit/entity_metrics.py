"""Precision, recall and F1 of entities: right are those whose span and type are exactly the gold's.

Written out and tested against seqeval, whose last release is of October 2020 and a source archive
only; the counts per sentence that the bootstrap needs it does not give.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.data.tag_schemes import Span, read_spans
from toolkit.stats import BOOTSTRAP_DRAWS, bootstrap_interval, pattern_count_draws
from toolkit.task_scores.measures import f1_of_counts

Tags = Sequence[Sequence[str]]
Counts = NDArray[np.int64]  # [..., 3]: right, predicted, gold


def entities(tags: Tags) -> list[list[Span]]:
    """Entities of every sentence in BIO; I that continues nothing begins one, as for CoNLL."""
    return [read_spans(sentence)[0] for sentence in tags]


def count_entities(
    gold: Sequence[Sequence[Span]],
    predicted: Sequence[Sequence[Span]],
    keep: Callable[[int, Span], bool] = lambda row, span: True,
) -> Counts:
    """Right, predicted and gold entities of every sentence [sentences, 3].

    Args:
        keep: says of a span of a sentence (by its number) whether it counts.
    """
    counts = np.zeros((len(gold), 3), dtype=np.int64)
    for row, (true, found) in enumerate(zip(gold, predicted, strict=True)):
        true_kept = {span for span in true if keep(row, span)}
        found_kept = {span for span in found if keep(row, span)}
        counts[row] = len(true_kept & found_kept), len(found_kept), len(true_kept)
    return counts


def scores(counts: Counts) -> dict[str, Any]:
    """precision, recall and f1 (0 where undefined) of summed counts [3], and the counts."""
    right, predicted, gold = (int(count) for count in counts)
    return {
        "precision": right / predicted if predicted else 0.0,
        "recall": right / gold if gold else 0.0,
        "f1": 2 * right / (predicted + gold) if predicted + gold else 0.0,
        "right": right,
        "predicted": predicted,
        "gold": gold,
    }


def f1_draws(counts: Counts, draws: int = BOOTSTRAP_DRAWS, seed: int = 0) -> NDArray[np.float64]:
    """F1 on bootstrap samples of the sentences [draws], drawn as counts of the distinct triples."""
    patterns, frequency = np.unique(counts, axis=0, return_counts=True)
    blocks = pattern_count_draws(frequency, draws, seed)
    return np.concatenate([f1_of_counts(drawn @ patterns) for drawn in blocks])


def describe_entities(
    tokens: Tags, gold: Tags, predicted: Tags, seen: set[tuple[str, str]]
) -> dict[str, Any]:
    """The scores of a split as a run's summary holds them.

    Args:
        tokens: of every sentence.
        seen: type and text of the entities in training (`entity_names`).

    Returns:
        entity_f1 (micro, with interval), precision, recall, `types` (each type alone), and `seen`
        and `unseen`: entities whose name training has shown for their type, and the others.
    """
    true, found = entities(gold), entities(predicted)
    counts = count_entities(true, found)
    n = len(gold)
    sampled = f1_draws(counts)
    interval, error = bootstrap_interval(sampled)
    total = scores(counts.sum(0))
    kinds = sorted({span.kind for spans in (*true, *found) for span in spans})

    def was_seen(row: int, span: Span) -> bool:
        return _name(tokens[row], span) in seen

    return {
        "entity_f1": {
            "value": total["f1"],
            "n": n,
            "interval": [interval.low, interval.high],
            "interval_method": f"{interval.method} over sentences",
            "standard_error": error,
            "bootstrap": {"draws": BOOTSTRAP_DRAWS, "seed": 0},
            "signature": f"entity F1|micro|exact span and type|scheme:bio, lone I begins an entity|"
            f"sentences:{n}|entities:{total['gold']}",
        },
        **{key: total[key] for key in ("precision", "recall", "right", "predicted", "gold")},
        "types": {
            kind: scores(count_entities(_of(kind, true), _of(kind, found)).sum(0)) for kind in kinds
        },
        "seen": scores(count_entities(true, found, was_seen).sum(0)),
        "unseen": scores(count_entities(true, found, lambda r, s: not was_seen(r, s)).sum(0)),
    }


def entity_names(tokens: Tags, tags: Tags) -> Counter[tuple[str, str]]:
    """Type and text of every entity, and how often it stands there."""
    return Counter(
        _name(sentence, span)
        for sentence, spans in zip(tokens, entities(tags), strict=True)
        for span in spans
    )


def _of(kind: str, rows: Sequence[Sequence[Span]]) -> list[list[Span]]:
    return [[span for span in spans if span.kind == kind] for spans in rows]


def _name(tokens: Sequence[str], span: Span) -> tuple[str, str]:
    return span.kind, " ".join(tokens[span.start : span.stop])
