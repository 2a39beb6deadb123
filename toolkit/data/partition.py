"""Three splits from what is given: leaks removed, missing splits made, sizes as asked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from toolkit.console import notify
from toolkit.data.rows import HELD_OUT, LabelledRows, count_rows
from toolkit.data.splits import (
    Groups,
    find_overlap,
    held_out_size,
    split_hash,
    stratified_order,
    take,
)
from toolkit.errors import UserError


def remove_leaks(splits: dict[str, LabelledRows], keep: bool) -> dict[str, dict[str, int]]:
    """Take rows that stand in a given held-out split out of `splits["train"]`; count them.

    A pair of texts stands there where both do, in one row and in this order. Validation texts that
    stand in a given test split are counted only: a given split is used whole.

    Raises:
        UserError: no training row would be left.
    """
    report = {}
    leaked: set[int] = set()
    train = splits["train"]
    kind = "text" if train.pairs is None else "pair"
    for name in HELD_OUT:
        if name not in splits:
            continue
        overlap = find_overlap(train, splits[name])
        report[name] = {
            "in_train_exact": overlap.exact,
            "in_train_normalized": overlap.normalized,
            "with_opposite_label": overlap.opposite_label,
            "training_rows": len(overlap.training_rows),
            "training_rows_removed": 0 if keep else len(overlap.training_rows),
        }
        leaked |= overlap.training_rows
        if overlap.normalized:
            other = overlap.opposite_label
            labels = f", {other} with another label" if other else ""
            notify(
                f"warning: {overlap.normalized} of {len(splits[name])} {name} {kind}s also stand "
                f"in the training rows ({overlap.exact} letter for letter{labels}); "
                f"{count_rows(len(overlap.training_rows))} of training "
                f"{'kept' if keep else 'removed'}."
            )
    if all(name in splits for name in HELD_OUT):
        shared = find_overlap(splits["validation"], splits["test"]).normalized
        report["test"]["in_validation_normalized"] = shared
        if shared:
            notify(f"warning: {shared} test {kind}s also stand in the validation rows.")
    if leaked and not keep:
        if len(leaked) == len(train):
            raise UserError(f"every training {kind} also stands in the validation or test rows.")
        splits["train"] = train.select([i for i in range(len(train)) if i not in leaked])
    if report:  # a row may stand in both
        report["train"] = {"rows_removed": len(train) - len(splits["train"])}
    return report


def sizes_to_make(
    made: list[str], sizes: dict[str, int | None], available: int, names: list[str]
) -> dict[str, int]:
    """Rows of every split in `made`, as asked or a tenth of what is available.

    Raises:
        UserError: nothing would be left to train on.
    """
    made_sizes = {name: held_out_size(sizes[name], available, len(names)) for name in made}
    if sum(made_sizes.values()) >= available:
        wanted = " and ".join(f"{size:,} {name} rows" for name, size in made_sizes.items())
        raise UserError(
            f"{available:,} rows cannot give {wanted} and leave rows to train on. Bring more rows, "
            "give files of your own for these splits, or ask for less."
        )
    return made_sizes


def make_splits(
    given: dict[str, LabelledRows],
    made_sizes: dict[str, int],
    sizes: dict[str, int | None],
    seed: int,
) -> dict[str, LabelledRows]:
    """All three splits: made ones first, the rest to train on; then cut to `sizes`.

    Raises:
        UserError: equal texts, which stay together, leave a split that is made empty.
    """
    pool = given["train"]
    splits = {name: given[name] for name in HELD_OUT if name in given}
    for name in sorted(made_sizes):  # test first: its rows do not depend on validation
        taken, remaining = take(stratified_order(pool.keys, pool.labels, seed), made_sizes[name])
        check_taken(taken, remaining, name, made_sizes[name])
        splits[name] = pool.select(sorted(taken))
        pool = pool.select(sorted(remaining.flat()))
    order = stratified_order(pool.keys, pool.labels, seed).flat()
    size = _checked_size("train", sizes["train"], len(order))
    return {
        "train": pool.select(order[:size]),
        **{name: _first_rows(splits[name], sizes[name], name, seed) for name in HELD_OUT},
    }


def check_taken(taken: list[int], remaining: Groups, name: str, size: int) -> None:
    """A split that was made has rows.

    Args:
        taken, remaining: rows, and groups of rows with equal texts, as `splits.take` parts them.
        name, size: of the split that was to be made.

    Raises:
        UserError: it has none.
    """
    if not taken:
        raise UserError(
            f"cannot make a {name} split of {size:,} rows: equal texts stay together, and each of "
            f"the {len(remaining):,} different ones stands there more often than that. Bring more "
            f"different rows, ask for more (--{name}_size), or give {name} rows of your own."
        )


def complete_splits(
    given: dict[str, LabelledRows],
    fixed_sizes: dict[str, int],
    sizes: dict[str, int | None],
    seed: int,
    names: list[str],
) -> dict[str, LabelledRows]:
    """`make_splits`: what is not given is made in the source's sizes, or as asked.

    Args:
        fixed_sizes: held-out rows, where the source itself fixes how many it has.
        sizes: rows of every split as asked; None: all, or a tenth where the split is made.
        names: classes; a split that is made has room for each.

    Raises:
        UserError: more rows are asked for than there are.
    """
    made = missing_splits(given)
    if fixed_sizes:
        return make_splits(given, {name: fixed_sizes[name] for name in made}, sizes, seed)
    made_sizes = sizes_to_make(made, sizes, len(given["train"]), names)
    # Made in this size, not to be cut to it.
    return make_splits(given, made_sizes, sizes | dict.fromkeys(made), seed)


def missing_splits(given: Collection[str]) -> list[str]:
    """Held-out splits that have to be made."""
    return [name for name in HELD_OUT if name not in given]


def describe_splits(
    splits: dict[str, LabelledRows], made: list[str], seed: int, names: list[str]
) -> dict[str, Any]:
    """What data.json records of splits with classes: how they were made, and what is in them."""
    return {
        "splits_made": made,
        "split_seed": seed,
        "sizes": {name: len(split) for name, split in splits.items()},
        "class_counts": {name: split.class_counts(names) for name, split in splits.items()},
        "sha256": {
            name: split_hash(split.contents, split.labels) for name, split in splits.items()
        },
    }


def _first_rows(split: LabelledRows, size: int | None, name: str, seed: int) -> LabelledRows:
    """All rows, or a stratified part of `size` rows, in the order of the source."""
    if size is None or size == len(split):
        return split
    order = stratified_order(split.keys, split.labels, seed).flat()
    return split.select(sorted(order[: _checked_size(name, size, len(split))]))


def _checked_size(name: str, size: int | None, available: int) -> int:
    if size is not None and not 0 < size <= available:
        raise UserError(f"cannot use {size:,} {name} rows: there are {available:,}.")
    return available if size is None else size
