"""Texts with labels, from anywhere, in three splits, with everything noticed written down."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import datasets

from toolkit.console import notify
from toolkit.data.columns import label_column as find_label_column
from toolkit.data.columns import text_column as find_text_column
from toolkit.data.files import Table
from toolkit.data.labels import class_counts, label_name, label_order
from toolkit.data.sources import read_source
from toolkit.data.splits import (
    Labelled,
    find_overlap,
    held_out_size,
    is_blank,
    normalized,
    repetitions,
    split_hash,
    stratified_order,
    take,
)
from toolkit.data.tokenization import tokenize
from toolkit.errors import UserError

__all__ = ["TextClassificationData", "load_text_classification", "tokenize"]

HELD_OUT = ("validation", "test")


@dataclass(frozen=True)
class TextClassificationData:
    """Three splits with the columns id (str), text (str) and label (int).

    An id is a hash of the text and the row of the source: the same in every run on the same file.
    `tokenize` adds input_ids and length. `summary` is what data.json records.
    """

    train: datasets.Dataset
    validation: datasets.Dataset
    test: datasets.Dataset
    label_names: list[str]  # in id order
    summary: dict[str, Any]


def load_text_classification(
    dataset: str,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    validation_file: str | None = None,
    test_file: str | None = None,
    train_size: int | None = None,
    validation_size: int | None = None,
    test_size: int | None = None,
    split_seed: int = 0,
    keep_leaks: bool = False,
) -> TextClassificationData:
    """Read `dataset`, check it, and split it.

    Args:
        dataset: `demo:reviews`, a file (csv, tsv, json, jsonl, parquet, each also .gz), a folder of
            splits (train.csv, validation.csv, test.csv) or a data set on the Hub.
        text_column, label_column: needed where the names do not tell.
        validation_file, test_file: splits that come from their own files.
        train_size: train on the first so many rows of a fixed stratified order, so that 500 are
            part of 1,000; validation and test do not change with it.
        validation_size, test_size: rows of these splits. Splits that the source does not have are
            made from its training rows, a tenth each by default.
        split_seed: seed of the splits and of the stratified order.
        keep_leaks: keep training rows whose text is also in validation or test.

    The label order is decided by the training rows (or by the data set itself where it names its
    classes). Training rows come in the stratified order, the others in the order of the source.

    Raises:
        UserError: whatever is wrong with the data, with file and row.
    """
    source = read_source(dataset, validation_file=validation_file, test_file=test_file)
    rows = {
        name: _read_rows(table, text_column, label_column) for name, table in source.tables.items()
    }
    cleaned = {name: _clean(split, name, source.splits_given) for name, split in rows.items()}
    names = _decide_label_names(cleaned)
    overlap = _remove_leaks(cleaned, keep_leaks)
    made = [name for name in HELD_OUT if name not in cleaned]
    sizes = {"train": train_size, "validation": validation_size, "test": test_size}
    if source.held_out_sizes:
        made_sizes = {name: source.held_out_sizes[name] for name in made}
    else:
        made_sizes = _made_sizes(made, sizes, len(cleaned["train"]), names)
        sizes |= dict.fromkeys(made)  # made in this size, not to be cut to it
    splits = _split(cleaned, made_sizes, sizes, split_seed)
    _check_labels_of_made_splits(splits, names)
    summary = {
        "source": dataset,
        "columns": {name: list(split.columns) for name, split in rows.items()},
        "rows_read": source.rows_read or {name: len(split) for name, split in rows.items()},
        "dropped": source.dropped | {name: split.dropped for name, split in cleaned.items()},
        "repetitions_in_train": repetitions(cleaned["train"]),
        "overlap": overlap,
        "splits_made": made,
        "split_seed": split_seed,
        "sizes": {name: len(split) for name, split in splits.items()},
        "class_counts": {name: split.class_counts(names) for name, split in splits.items()},
        "sha256": {name: split_hash(split.texts, split.labels) for name, split in splits.items()},
    }
    return TextClassificationData(
        **{name: split.to_dataset(names) for name, split in splits.items()},
        label_names=names,
        summary=summary,
    )


@dataclass(frozen=True)
class _Rows(Labelled):
    """Rows of one split while they are checked; a missing label is "" until cleaned."""

    ids: list[str]
    place: Callable[[int], str]  # of an original row, for messages
    rows: list[int]  # original row of each, 0-based
    columns: tuple[str, str]
    class_names: list[str] | None  # where the source itself names its classes
    dropped: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, indices: Sequence[int]) -> _Rows:
        return replace(
            self,
            ids=[self.ids[i] for i in indices],
            texts=[self.texts[i] for i in indices],
            keys=[self.keys[i] for i in indices],
            labels=[self.labels[i] for i in indices],
            rows=[self.rows[i] for i in indices],
        )

    def class_counts(self, names: list[str]) -> dict[str, int]:
        return class_counts(self.label_ids(names), names)

    def label_ids(self, names: list[str]) -> list[int]:
        position = {name: index for index, name in enumerate(names)}
        return [position[label] for label in self.labels]

    def to_dataset(self, names: list[str]) -> datasets.Dataset:
        features = datasets.Features(
            {
                "id": datasets.Value("string"),
                "text": datasets.Value("string"),
                "label": datasets.Value("int64"),
            }
        )
        columns = {"id": self.ids, "text": self.texts, "label": self.label_ids(names)}
        return datasets.Dataset.from_dict(columns, features=features)


def _read_rows(table: Table, text_column: str | None, label_column: str | None) -> _Rows:
    columns = list(table.columns)
    text_name = find_text_column(columns, text_column, table.source)
    label_name_ = find_label_column(columns, label_column, table.source)
    texts, ids, labels = [], [], []
    for row, (text, label) in enumerate(
        zip(table.columns[text_name], table.columns[label_name_], strict=True)
    ):
        text = "" if text is None else text
        if not isinstance(text, str):
            raise UserError(f"{table.place(row)}: {text_name} is {text!r:.60}, expected a text.")
        try:
            ids.append(f"{hashlib.sha256(text.encode()).hexdigest()[:12]}-{row + 1}")
            labels.append(label_name(label) or "")
        except UnicodeEncodeError as error:
            raise UserError(
                f"{table.place(row)}: {text_name} holds half a character (a surrogate, character "
                f"{error.start + 1})."
            ) from error
        except ValueError as error:
            raise UserError(f"{table.place(row)}: {label_name_} is {error}.") from error
        texts.append(text)
    return _Rows(
        ids=ids,
        texts=texts,
        keys=list(map(normalized, texts)),
        labels=labels,
        place=table.place,
        rows=list(range(len(texts))),
        columns=(text_name, label_name_),
        class_names=table.class_names.get(label_name_),
    )


def _clean(split: _Rows, name: str, splits_given: bool) -> _Rows:
    """Without rows that have no text or no label; a given held-out split must have none of them."""
    blank = [i for i, text in enumerate(split.texts) if is_blank(text)]
    unlabelled = [i for i, label in enumerate(split.labels) if not label]
    if name in HELD_OUT and (blank or unlabelled):
        wrong, what = (blank, "text") if blank else (unlabelled, "label")
        raise UserError(
            f"{split.place(split.rows[wrong[0]])}: no {what}. {len(wrong)} of {len(split)} {name} "
            f"rows have none; a {name} set is used whole, so remove or complete them."
        )
    left_out = set(blank) | set(unlabelled)
    if left_out:
        which = "training" if splits_given else "the data"
        counts = [
            f"{_rows(len(missing))} without {what}"
            for missing, what in ((blank, "text"), (unlabelled, "label"))
            if missing
        ]
        first = split.place(min(left_out))
        notify(f"left out of {which}: {' and '.join(counts)} (the first: {first}).")
    kept = split.select([i for i in range(len(split)) if i not in left_out])
    return replace(kept, dropped={"without_text": len(blank), "without_label": len(unlabelled)})


def _rows(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"


def _decide_label_names(splits: dict[str, _Rows]) -> list[str]:
    train = splits["train"]
    given = [label_name(name) or name for name in train.class_names or []]
    names = given or label_order(train.labels)
    found = set(train.labels)
    where = f"column {train.columns[1]!r} of {train.place(0).rsplit(',', 1)[0]}"
    if not found:
        raise UserError(f"no row with both a text and a label is left in {where}.")
    if len(found) == 1:
        raise UserError(
            f"{where} has 1 class only ({names[0]!r} in all {len(train):,} rows); "
            "a classifier needs at least two."
        )
    if len(found) > 20 and len(found) > len(train) / 2:
        raise UserError(
            f"{where} has {len(found):,} different values in {len(train):,} rows: not classes. "
            "Name the label column with --label_column."
        )
    for name in HELD_OUT:
        if name in splits:
            _check_known(splits[name], name, names)
    return names


def _check_known(split: _Rows, name: str, known: list[str]) -> None:
    unknown = {
        label: i for i, label in reversed(list(enumerate(split.labels))) if label not in known
    }
    if unknown:
        first = split.place(split.rows[min(unknown.values())])
        raise UserError(
            f"{first}: the {name} set has labels that no training row has: "
            f"{', '.join(repr(label) for label in sorted(unknown))}. "
            f"Known labels: {', '.join(known)}."
        )


def _check_labels_of_made_splits(splits: dict[str, _Rows], names: list[str]) -> None:
    untrained = [name for name in names if name not in set(splits["train"].labels)]
    held_out = {label for name in HELD_OUT for label in splits[name].labels}
    if lost := [name for name in untrained if name in held_out]:
        raise UserError(
            f"no training row is left with the label {', '.join(map(repr, lost))} "
            f"({len(splits['train']):,} training rows). Train on more rows, or remove those labels."
        )
    for name in HELD_OUT:
        if missing := [label for label in names if label not in set(splits[name].labels)]:
            notify(f"warning: the {name} set has no row of {', '.join(missing)}.")


def _remove_leaks(splits: dict[str, _Rows], keep: bool) -> dict[str, dict[str, int]]:
    """Take rows that stand in a given held-out split out of `splits["train"]`; count them."""
    report = {}
    leaked: set[int] = set()
    train = splits["train"]
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
            notify(
                f"warning: {overlap.normalized} of {len(splits[name])} {name} texts also stand in "
                f"the training rows ({overlap.exact} letter for letter, {overlap.opposite_label} "
                f"with another label); {_rows(len(overlap.training_rows))} of training "
                f"{'kept' if keep else 'removed'}."
            )
    if leaked and not keep:
        splits["train"] = train.select([i for i in range(len(train)) if i not in leaked])
    return report


def _made_sizes(
    made: list[str], sizes: dict[str, int | None], available: int, names: list[str]
) -> dict[str, int]:
    made_sizes = {name: held_out_size(sizes[name], available, len(names)) for name in made}
    if sum(made_sizes.values()) >= available:
        wanted = " and ".join(f"{size:,} {name} rows" for name, size in made_sizes.items())
        raise UserError(
            f"{available:,} rows cannot give {wanted} and leave rows to train on. Bring more rows, "
            "give files of your own for these splits, or ask for less."
        )
    return made_sizes


def _split(
    given: dict[str, _Rows], made_sizes: dict[str, int], sizes: dict[str, int | None], seed: int
) -> dict[str, _Rows]:
    """All three splits: made ones first, the rest to train on; then cut to `sizes`."""
    pool = given["train"]
    splits = {name: given[name] for name in HELD_OUT if name in given}
    for name in sorted(made_sizes):  # test first: its rows do not depend on validation
        taken, remaining = take(stratified_order(pool.keys, pool.labels, seed), made_sizes[name])
        splits[name] = pool.select(sorted(taken))
        pool = pool.select(sorted(row for group in remaining for row in group))
    order = [row for group in stratified_order(pool.keys, pool.labels, seed) for row in group]
    size = _checked_size("train", sizes["train"], len(order))
    return {
        "train": pool.select(order[:size]),
        **{name: _first_rows(splits[name], sizes[name], name, seed) for name in HELD_OUT},
    }


def _first_rows(split: _Rows, size: int | None, name: str, seed: int) -> _Rows:
    """All rows, or a stratified part of `size` rows, in the order of the source."""
    if size is None or size == len(split):
        return split
    order = [row for group in stratified_order(split.keys, split.labels, seed) for row in group]
    return split.select(sorted(order[: _checked_size(name, size, len(split))]))


def _checked_size(name: str, size: int | None, available: int) -> int:
    if size is not None and not 0 < size <= available:
        raise UserError(f"cannot use {size:,} {name} rows: there are {available:,}.")
    return available if size is None else size
