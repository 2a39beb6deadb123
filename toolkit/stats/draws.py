"""Draws of corpus metrics on bootstrap samples of the test examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

BOOTSTRAP_DRAWS = 10_000
# Draws are made in blocks, so that they stay in memory whatever there is to be drawn.
_MAX_BLOCK_CELLS = 4_000_000
# With more kinds of units than units over this, one number per unit is drawn faster than one per
# kind.
_MANY_KINDS = 8

# Units times draws of very many draws: some seconds of random numbers.
_MAX_UNIT_DRAWS = 400_000_000

# Summed statistics [..., k] -> scores [...].
ScoreFunction = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def score_draws(
    statistics: Sequence[NDArray[Any]],
    score: ScoreFunction,
    *,
    clusters: NDArray[Any] | None = None,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Scores of every run on bootstrap samples of the test examples, [runs, draws].

    The score of a set is a function of sums over its examples: of right and 1 for an accuracy, of
    right, predicted and gold entities for their F1, of n-gram counts for BLEU, of nats and tokens
    for perplexity. So a sample is how often it holds each example, and its sums are a product.

    All runs see the same samples (Efron and Tibshirani 1993; Koehn 2004). They depend on `seed` and
    on the number of units only: draws of several calls, and of several metrics, are paired as well.

    Args:
        statistics: of every run, one row per example [examples, k]; the same examples in the same
            order.
        score: of summed statistics [draws, runs, k], the scores [draws, runs].
        clusters: what each example belongs to [examples], such as its document: then whole clusters
            are drawn. None: every example is a unit.

    Returns:
        Scores. A run with a statistic that is not finite has what `score` makes of NaN.

    Raises:
        ValueError: no run, no example, or shapes that differ.
    """
    [scores] = measures_draws([(statistics, score)], clusters=clusters, draws=draws, seed=seed)
    return scores


def measures_draws(
    measures: Sequence[tuple[Sequence[NDArray[Any]], ScoreFunction]],
    *,
    clusters: NDArray[Any] | None = None,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int = 0,
) -> list[NDArray[np.float64]]:
    """`score_draws` of several metrics of the same examples, whose samples are then drawn once.

    Args:
        measures: statistics and score of each, as `score_draws` takes them.
        clusters: likewise.
        draws: likewise.
        seed: likewise.

    Returns:
        Of each measure [runs, draws].
    """
    tables = [_table(statistics) for statistics, _ in measures]
    if clusters is not None:
        tables = [_summed_over(table, np.asarray(clusters)) for table in tables]
    units = len(tables[0])
    columns = np.concatenate([table.reshape(units, -1) for table in tables], axis=1)
    ends = np.cumsum([table.shape[1] * table.shape[2] for table in tables])
    scores = [np.empty((table.shape[1], draws)) for table in tables]
    done = 0
    for counts in _unit_count_draws(units, draws, seed, width=columns.shape[1]):
        parts = np.split(counts @ columns, ends[:-1], axis=1)
        for table, part, drawn, (_, score) in zip(tables, parts, scores, measures, strict=True):
            sums = part.reshape(len(counts), *table.shape[1:])
            drawn[:, done : done + len(counts)] = score(sums).T
        done += len(counts)
    return scores


def _unit_count_draws(
    units: int, draws: int, seed: int, width: int
) -> Iterator[NDArray[np.float64]]:
    """How often bootstrap samples hold each unit, in blocks [draws, units] that are written over.

    Args:
        width: statistics that are summed for every draw; they stand in memory beside the counts.
    """
    generator = np.random.default_rng(seed)
    block = max(1, min(draws, _MAX_BLOCK_CELLS // max(units, width)))
    counts = np.empty((block, units))
    for start in range(0, draws, block):
        size = min(block, draws - start)
        for row in counts[:size]:
            row[:] = np.bincount(generator.integers(0, units, units), minlength=units)
        yield counts[:size]


def differences_draws(
    statistics: Sequence[NDArray[Any]],
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    score: ScoreFunction,
    *,
    clusters: NDArray[Any] | None = None,
    draws: int,
    seed: int = 0,
) -> list[NDArray[np.float64]]:
    """Draws of the differences of pairs of methods, means over their runs, [draws] each.

    For very many draws: units that are alike in all runs of a pair are not told apart where that
    leaves few kinds of them (see `pattern_count_draws`), which then cost little. All other pairs
    share their samples, of which there are fewer where there are many units.

    Args:
        statistics: of every run, as for `score_draws`.
        pairs: the places of the first method's runs among them, and of the second's.
        score: as for `score_draws`.
        clusters: likewise.
        draws: at most.
        seed: of these samples, which are others than those of `score_draws`.
    """
    table = _table(statistics)
    if clusters is not None:
        table = _summed_over(table, np.asarray(clusters))
    units = len(table)
    found: dict[int, NDArray[np.float64]] = {}
    for number, (first, second) in enumerate(pairs):
        columns = table[:, [*first, *second]].reshape(units, -1)
        kinds, frequency = np.unique(columns, axis=0, return_counts=True)
        if _MANY_KINDS * len(kinds) <= units:
            blocks = pattern_count_draws(frequency, draws, seed)
            found[number] = _differences(blocks, kinds, len(first), table.shape[2], score)
    if len(found) == len(pairs):
        return list(found.values())
    fewer = max(min(draws, _MAX_UNIT_DRAWS // units), min(draws, BOOTSTRAP_DRAWS))
    others = [pair for number, pair in enumerate(pairs) if number not in found]
    used = sorted({run for pair in others for run in (*pair[0], *pair[1])})
    scores = dict(
        zip(used, score_draws([table[:, run] for run in used], score, draws=fewer, seed=seed),
            strict=True)
    )  # fmt: skip

    def mean(runs: Sequence[int]) -> NDArray[np.float64]:
        return np.mean([scores[run] for run in runs], axis=0)

    return [
        found[number] if number in found else mean(first) - mean(second)
        for number, (first, second) in enumerate(pairs)
    ]


def _differences(
    blocks: Iterator[NDArray[Any]],
    kinds: NDArray[np.float64],
    first: int,
    k: int,
    score: ScoreFunction,
) -> NDArray[np.float64]:
    """From counts of kinds [kinds, runs * k], whose first runs are the first method's: [draws]."""
    found = []
    for counts in blocks:
        scores = score((counts @ kinds).reshape(len(counts), -1, k))
        found.append(scores[:, :first].mean(axis=1) - scores[:, first:].mean(axis=1))
    return np.concatenate(found)


def _table(statistics: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """[examples, runs, k]."""
    shapes = {np.shape(rows) for rows in statistics}
    if len(shapes) != 1 or len(shape := next(iter(shapes))) != 2 or 0 in shape:
        raise ValueError(
            "every run needs statistics [examples, k] of the same examples, at least one, "
            f"not of shapes {sorted(shapes)}"
        )
    table = np.stack([np.asarray(rows, dtype=np.float64) for rows in statistics], axis=1)
    # Infinity times a count of 0 is NaN: what is not finite would depend on the sample.
    table[~np.isfinite(table)] = np.nan
    return table


def _summed_over(table: NDArray[np.float64], clusters: NDArray[Any]) -> NDArray[np.float64]:
    """Sums per cluster [clusters, runs, k], in the order of their labels."""
    if clusters.shape != table.shape[:1]:
        raise ValueError(f"clusters of shape {clusters.shape} for {len(table)} examples")
    order = np.argsort(clusters, kind="stable")
    ordered = clusters[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return np.add.reduceat(table[order], first, axis=0)


def pattern_count_draws(
    frequency: NDArray[np.integer], draws: int, seed: int
) -> Iterator[NDArray[np.int64]]:
    """How often bootstrap samples hold each distinct pattern, in blocks [draws, patterns].

    Examples that are alike for a metric need not be told apart: how often a sample holds each kind
    is multinomial. With few kinds this costs a small part of `score_draws`; its samples, however,
    are others for every set of patterns.

    Args:
        frequency: examples of each pattern [patterns].
    """
    generator = np.random.default_rng(seed)
    n = int(frequency.sum())
    block = max(1, _MAX_BLOCK_CELLS // len(frequency))
    for start in range(0, draws, block):
        yield generator.multinomial(n, frequency / n, size=min(block, draws - start))
