"""Rows of labelled texts: read from a table, checked, and their classes put in order."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import datasets
import pyarrow as pa

from toolkit.console import notify
from toolkit.data.arrow_files import ROWS_A_BATCH
from toolkit.data.columns import label_column as find_label_column
from toolkit.data.columns import pair_column as find_pair_column
from toolkit.data.columns import text_column as find_text_column
from toolkit.data.encoding import half_character
from toolkit.data.files import Table
from toolkit.data.labels import class_counts, label_name, label_order
from toolkit.data.splits import (
    Content,
    Labelled,
    blank_kind,
    is_blank,
    normalized,
    normalized_pair,
    split_hash,
)
from toolkit.errors import UserError

HELD_OUT = ("validation", "test")


@dataclass(frozen=True)
class LabelledRows(Labelled):
    """Rows of one split while they are checked; a missing label is "" until cleaned.

    `columns` names those of text, second text (of pairs) and label, in this order.
    """

    ids: list[str]
    place: Callable[[int], str]  # of an original row, for messages
    rows: list[int]  # original row of each, 0-based
    columns: tuple[str, ...]
    class_names: list[str] | None  # where the source itself names its classes
    dropped: dict[str, int] = field(default_factory=dict)
    pairs: Sequence[str] | None = None  # the second text of every row
    origin: str = ""  # what messages call all rows together; "" where they have no classes

    @property
    def contents(self) -> Sequence[Content]:
        """The texts; of pairs both texts of every row."""
        return self.texts if self.pairs is None else list(zip(self.texts, self.pairs, strict=True))

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, indices: Sequence[int]) -> LabelledRows:
        """These rows, in this order."""
        return replace(
            self,
            ids=[self.ids[i] for i in indices],
            texts=[self.texts[i] for i in indices],
            keys=[self.keys[i] for i in indices],
            labels=[self.labels[i] for i in indices],
            rows=[self.rows[i] for i in indices],
            pairs=None if self.pairs is None else [self.pairs[i] for i in indices],
        )

    def class_counts(self, names: list[str]) -> dict[str, int]:
        """Rows of every class, in id order."""
        return class_counts(self.label_ids(names), names)

    def label_ids(self, names: list[str]) -> list[int]:
        """Class id of every row."""
        position = {name: index for index, name in enumerate(names)}
        return [position[label] for label in self.labels]

    def to_dataset(self, names: list[str]) -> datasets.Dataset:
        """Columns id (str), text (str), pair (str; of pairs only), label (int)."""
        columns: dict[str, Sequence[str]] = {"id": self.ids, "text": self.texts}
        if self.pairs is not None:
            columns["pair"] = self.pairs
        table = pa.table(
            {name: _as_arrow(texts) for name, texts in columns.items()}
            | {"label": pa.array(self.label_ids(names), pa.int64())}
        )
        # datasets' own fingerprint would copy all of it; ids are hashes of the texts.
        return datasets.Dataset(table, fingerprint=split_hash(self.ids, self.labels)[:16])


def _as_arrow(texts: Sequence[str]) -> pa.ChunkedArray:
    """Texts in parts, by their bytes: Python keeps with every string what Arrow makes of it."""
    parts = [
        pa.array([text.encode() for text in texts[start : start + ROWS_A_BATCH]], pa.binary())
        for start in range(0, len(texts), ROWS_A_BATCH)
    ]
    return pa.chunked_array([part.cast(pa.string()) for part in parts], pa.string())


def read_rows(
    table: Table,
    text_column: str | None,
    label_column: str | None,
    pair_column: str | None = None,
) -> LabelledRows:
    """Texts, label names and ids of a table.

    Args:
        pair_column: of the second text of every row; None: single texts.

    Raises:
        UserError: no such column, or a cell that is no text or no label; names the row.
    """
    columns = list(table.columns)
    text_name = find_text_column(columns, text_column, table.source)
    label_name_ = find_label_column(columns, label_column, table.source)
    texts = _read_texts(table, text_name)
    labels = _read_labels(table, label_name_)
    names: tuple[str, ...] = (text_name, label_name_)
    pairs, keys, hashed = None, list(map(normalized, texts)), texts
    if pair_column is not None:
        pair_name = find_pair_column(columns, pair_column, text_name, table.source)
        names = (text_name, pair_name, label_name_)
        pairs = _read_texts(table, pair_name)
        keys = list(map(normalized_pair, texts, pairs))
        hashed = [json.dumps(both, ensure_ascii=False) for both in zip(texts, pairs, strict=True)]
    return LabelledRows(
        ids=[
            f"{hashlib.sha256(content.encode()).hexdigest()[:12]}-{row}"
            for row, content in enumerate(hashed, start=1)
        ],
        texts=texts,
        keys=keys,
        labels=labels,
        place=table.place,
        rows=list(range(len(texts))),
        columns=names,
        class_names=table.class_names.get(label_name_),
        pairs=pairs,
        origin=f"column {label_name_!r} of {table.source}",
    )


def _read_texts(table: Table, column: str) -> list[str]:
    """Cells of a column; missing ones are empty."""
    texts = ["" if cell is None else cell for cell in table.columns[column]]
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise UserError(f"{table.place(row)}: {column} is {text!r:.60}, expected a text.")
        if wrong := half_character(text):
            raise UserError(f"{table.place(row)}: {column} {wrong}.")
    return texts


def _read_labels(table: Table, column: str) -> list[str]:
    """Label names of a column; missing ones are empty."""
    names: dict[tuple[type, Any], str] = {}  # of cells seen: every name once, however many rows
    labels = []
    for row, cell in enumerate(table.columns[column]):
        try:
            known = names.get((type(cell), cell))
        except TypeError:  # a list or an object
            known = None
        if known is None:
            try:
                known = label_name(cell) or ""
            except ValueError as error:
                raise UserError(f"{table.place(row)}: {column} is {error}.") from error
            if wrong := half_character(known):
                raise UserError(f"{table.place(row)}: {column} {wrong}.")
            if len(names) < _MOST_NAMES:
                names[type(cell), cell] = known
        labels.append(known)
    return labels


_MOST_NAMES = 10_000


def clean(split: LabelledRows, name: str, splits_given: bool) -> LabelledRows:
    """The rows that have a text (of pairs both texts) and a label.

    Raises:
        UserError: a given held-out split has others; it must be measured whole.
    """
    blank = _blank_rows(split)
    unlabelled = [i for i, label in enumerate(split.labels) if not label]
    text = "text" if split.pairs is None else f"text in {split.columns[0]} or {split.columns[1]}"
    if name in HELD_OUT and (blank or unlabelled):
        wrong, what = (blank, text) if blank else (unlabelled, "label")
        raise UserError(
            f"{split.place(split.rows[wrong[0]])}: no {what}. {len(wrong)} of {len(split)} {name} "
            f"rows have none; a {name} set is used whole, so remove or complete them."
        )
    left_out = set(blank) | set(unlabelled)
    if left_out:
        which = "training" if splits_given else "the data"
        counts = [
            f"{count_rows(len(missing))} without {what}"
            for missing, what in ((blank, text), (unlabelled, "label"))
            if missing
        ]
        first = split.place(min(left_out))
        notify(f"left out of {which}: {' and '.join(counts)} (the first: {first}).")
    kept = split.select([i for i in range(len(split)) if i not in left_out])
    return replace(kept, dropped={"without_text": len(blank), "without_label": len(unlabelled)})


def _blank_rows(split: LabelledRows) -> list[int]:
    """Rows without a text; of pairs those that lack either."""
    columns = [split.texts] if split.pairs is None else [split.texts, split.pairs]
    return [i for i, row in enumerate(zip(*columns, strict=True)) if any(map(is_blank, row))]


def count_blank(split: LabelledRows) -> dict[str, int]:
    """Texts (of pairs both of every row) that are empty, spaces, or invisible characters alone."""
    found = Counter(blank_kind(text) for text in [*split.texts, *(split.pairs or [])])
    return {kind: found[kind] for kind in ("empty", "spaces", "invisible")}


def decide_label_names(splits: dict[str, LabelledRows]) -> list[str]:
    """Classes in id order: as the source names them, else from the training rows alone.

    Raises:
        UserError: fewer than two classes, a column that holds no classes, or a held-out label that
            no training row has.
    """
    train = splits["train"]
    given = [label_name(name) or name for name in train.class_names or []]
    names = given or label_order(train.labels)
    found = set(train.labels)
    where = train.origin
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


def _check_known(split: LabelledRows, name: str, known: list[str]) -> None:
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


def check_trained_labels(splits: dict[str, LabelledRows], names: list[str]) -> None:
    """Every held-out class must be trained; a class without held-out rows is said.

    Raises:
        UserError: a class is held out but not trained.
    """
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


def count_rows(count: int) -> str:
    """How many rows, in words: 1 row, 2,000 rows."""
    return f"{count:,} row" if count == 1 else f"{count:,} rows"
