"""Parallel texts from anywhere in three splits that share no source text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import datasets

from toolkit.console import notify
from toolkit.data.parallel import Pairs, ParallelSource
from toolkit.data.partition import check_taken
from toolkit.data.splits import (
    held_out_size,
    is_blank,
    normalized,
    split_hash,
    stratified_order,
    take,
)
from toolkit.errors import UserError

HELD_OUT = ("validation", "test")


@dataclass(frozen=True)
class TranslationData:
    """Three splits with the columns id, source and target (all str).

    `tokenize_pairs` adds input_ids, labels and lengths. `summary` is what data.json records.
    """

    train: datasets.Dataset
    validation: datasets.Dataset
    test: datasets.Dataset
    source_language: str
    target_language: str
    summary: dict[str, Any]


@dataclass(frozen=True)
class _Rows:
    """Rows of one split: numbers into pairs that have both sides, with the sources' keys."""

    pairs: Pairs
    rows: list[int]
    keys: list[str]  # `normalized` sources

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, indices: Sequence[int]) -> _Rows:
        return replace(
            self, rows=[self.rows[i] for i in indices], keys=[self.keys[i] for i in indices]
        )

    @property
    def kinds(self) -> list[str]:
        kinds = self.pairs.kinds
        return [""] * len(self) if kinds is None else [kinds[row] for row in self.rows]

    def texts(self) -> tuple[list[str], list[str]]:
        sources, targets = self.pairs.sources, self.pairs.targets
        return [sources[row] for row in self.rows], [targets[row] for row in self.rows]

    def to_dataset(self) -> datasets.Dataset:
        sources, targets = self.texts()
        ids = [
            f"{hashlib.sha256(source.encode()).hexdigest()[:12]}-{row + 1}"
            for source, row in zip(sources, self.rows, strict=True)
        ]
        text = datasets.Value("string")
        return datasets.Dataset.from_dict(
            {"id": ids, "source": sources, "target": targets},
            features=datasets.Features({"id": text, "source": text, "target": text}),
        )


def split_pairs(
    source: ParallelSource,
    name: str,
    languages: tuple[str, str],
    *,
    sizes: dict[str, int | None] | None = None,
    split_seed: int = 0,
    keep_leaks: bool = False,
) -> TranslationData:
    """Drop incomplete pairs, part what is not split yet, and keep test sources out of training.

    Args:
        name: of the data set, for data.json.
        languages: codes of source and target.
        sizes: rows of "train", "validation" and "test"; None uses all, or makes a tenth.
        keep_leaks: keep training pairs whose source text is also in validation or test.

    Training rows come in a fixed shuffled order, so that the first 500 are part of the first
    1,000; the others in the order of the source.

    Raises:
        UserError: a held-out pair without a side, sizes that cannot be had, nothing to train on.
    """
    sizes = sizes or {}
    given = {split: _complete(pairs, split) for split, pairs in source.pairs.items()}
    dropped = {split: len(source.pairs[split]) - len(rows) for split, rows in given.items()}
    overlap = {s: _overlap(given["train"], given[s]) for s in HELD_OUT if s in given}
    complete = len(given["train"])
    if not keep_leaks:
        given["train"] = _without_leaks(given)
    removed = complete - len(given["train"])
    splits = _make(given, source.held_out_sizes, sizes, split_seed)
    after = {split: _overlap(splits["train"], splits[split]) for split in HELD_OUT}
    if not keep_leaks and any(after.values()):
        raise RuntimeError(f"training and held-out rows share source texts: {after}")
    summary = {
        "source": name,
        "languages": list(languages),
        "origin": {split: pairs.origin for split, pairs in source.pairs.items()},
        "rows_read": {split: len(pairs) for split, pairs in source.pairs.items()},
        "left_out_in_reading": source.counts,
        "dropped_without_source_or_target": dropped,
        "held_out_sources_found_in_training": overlap,
        "held_out_sources_left_in_training": after,
        "training_pairs_removed": removed,
        "split_seed": split_seed,
        "sizes": {split: len(rows) for split, rows in splits.items()},
        "sha256": {split: split_hash(*rows.texts()) for split, rows in splits.items()},
    }
    return TranslationData(
        **{split: rows.to_dataset() for split, rows in splits.items()},
        source_language=languages[0],
        target_language=languages[1],
        summary=summary,
    )


def _complete(pairs: Pairs, split: str) -> _Rows:
    """The pairs that have both sides.

    Raises:
        UserError: a held-out split has others; it must be measured whole.
    """
    blank = [
        row
        for row, two in enumerate(zip(pairs.sources, pairs.targets, strict=True))
        if any(map(is_blank, two))
    ]
    if blank and split in HELD_OUT:
        side = "source" if is_blank(pairs.sources[blank[0]]) else "target"
        raise UserError(
            f"{pairs.place(blank[0])}: no {side} text. {len(blank)} of {len(pairs)} {split} pairs "
            f"lack a side; a {split} set is used whole, so remove or complete them."
        )
    if blank:
        count = f"{len(blank)} pair{'s' if len(blank) > 1 else ''}"
        notify(f"left out: {count} without source or target (the first: {pairs.place(blank[0])}).")
    left_out = set(blank)
    rows = [row for row in range(len(pairs)) if row not in left_out]
    if not rows:
        raise UserError(f"no pair with both sides is left in {pairs.origin}.")
    return _Rows(pairs, rows, [normalized(pairs.sources[row]) for row in rows])


def _overlap(train: _Rows, held_out: _Rows) -> int:
    """Held-out rows whose source text stands in training."""
    known = set(train.keys)
    return sum(key in known for key in held_out.keys)


def _without_leaks(splits: dict[str, _Rows]) -> _Rows:
    """Training rows whose source stands in no given held-out split."""
    train = splits["train"]
    held_out = {key for split in HELD_OUT if split in splits for key in splits[split].keys}
    kept = [i for i, key in enumerate(train.keys) if key not in held_out]
    if removed := len(train) - len(kept):
        notify(
            f"{removed} training pair{'s' if removed > 1 else ''} removed: the same source text is "
            "in validation or test (--keep-leaks keeps them)."
        )
    if not kept:
        raise UserError("every training source also stands in the validation or test pairs.")
    return train.select(kept)


def _make(
    given: dict[str, _Rows], made_sizes: dict[str, int], sizes: dict[str, int | None], seed: int
) -> dict[str, _Rows]:
    """All three splits, each in the size that was asked for."""
    pool = given["train"]
    available = len(pool)
    splits = {split: given[split] for split in HELD_OUT if split in given}
    for split in ("test", "validation"):  # test first: it does not depend on validation's size
        asked = sizes.get(split)
        if split in given:
            splits[split] = _first(given[split], asked, split, seed)
            continue
        size = held_out_size(asked or made_sizes.get(split), available, 1)
        if size >= len(pool):
            raise UserError(
                f"{available:,} pairs cannot give {size:,} for {split} and leave some to train on."
            )
        taken, remaining = take(stratified_order(pool.keys, pool.kinds, seed), size)
        check_taken(taken, remaining, split, size)
        splits[split] = pool.select(sorted(taken))
        pool = pool.select(sorted(remaining.flat()))
    order = stratified_order(pool.keys, pool.kinds, seed).flat()
    splits["train"] = pool.select(order[: _checked(sizes.get("train"), len(pool), "train")])
    return {split: splits[split] for split in ("train", *HELD_OUT)}


def _first(rows: _Rows, size: int | None, split: str, seed: int) -> _Rows:
    size = _checked(size, len(rows), split)
    if size == len(rows):
        return rows
    order = stratified_order(rows.keys, rows.kinds, seed).flat()
    return rows.select(sorted(order[:size]))


def _checked(size: int | None, available: int, split: str) -> int:
    if size is not None and not 0 < size <= available:
        raise UserError(f"cannot use {size:,} {split} pairs: there are {available:,}.")
    return available if size is None else size
