"""Texts with labels, from anywhere, in three splits, with everything noticed written down."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import datasets

from toolkit.console import notify
from toolkit.data.encoding import asked_encoding
from toolkit.data.partition import (
    complete_splits,
    describe_splits,
    missing_splits,
    remove_leaks,
)
from toolkit.data.prepared import prepared_once
from toolkit.data.rows import (
    HELD_OUT,
    LabelledRows,
    check_trained_labels,
    clean,
    count_blank,
    count_rows,
    decide_label_names,
    read_rows,
)
from toolkit.data.sources import Source, read_source, source_files
from toolkit.data.splits import repetitions
from toolkit.data.tokenization import tokenize

__all__ = ["TextClassificationData", "load_text_classification", "tokenize"]


@dataclass(frozen=True)
class TextClassificationData:
    """Three splits with the columns id (str), text (str), pair (str) and label (int).

    Only pairs of texts have the column pair. An id is a hash of the text (of both texts) and the
    row of the source: the same in every run on the same file. `tokenize` adds input_ids and length.
    `summary` is what data.json records.
    """

    train: datasets.Dataset
    validation: datasets.Dataset
    test: datasets.Dataset
    label_names: list[str]  # in id order
    summary: dict[str, Any]

    def training_texts(self) -> list[str]:
        """All texts to train on, to learn a vocabulary from; of pairs both."""
        names = [name for name in ("text", "pair") if name in self.train.column_names]
        return [text for name in names for text in self.train[name]]


def load_text_classification(
    dataset: str,
    *,
    hub_config: str | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
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
        hub_config: which configuration of a data set on the Hub that has several.
        text_column, label_column: needed where the names do not tell.
        pair_column: of the second text of every row; None: single texts.
        validation_file, test_file: splits that come from their own files.
        train_size: train on the first so many rows of a fixed stratified order, so that 500 are
            part of 1,000; validation and test do not change with it.
        validation_size, test_size: rows of these splits. Splits that the source does not have are
            made from its training rows, a tenth each by default.
        split_seed: seed of the splits and of the stratified order.
        keep_leaks: keep training rows whose text (or pair) is also in validation or test.

    The label order is decided by the training rows (or by the data set itself where it names its
    classes). Training rows come in the stratified order, the others in the order of the source.

    Raises:
        UserError: whatever is wrong with the data, with file and row.
    """
    reading = {"hub_config": hub_config, "validation_file": validation_file, "test_file": test_file}
    columns = (text_column, label_column, pair_column)
    sizes = {"train": train_size, "validation": validation_size, "test": test_size}
    prepare = partial(_prepare, dataset, reading, columns, sizes, split_seed, keep_leaks)
    places = [place for place in (dataset, validation_file, test_file) if place is not None]
    files = source_files(places)
    if files is None:
        return prepare()
    given = {name: value is not None for name, value in sorted(reading.items())}
    settings = [given, columns, sizes, split_seed, keep_leaks, asked_encoding()]
    data = prepared_once(places, files, settings, prepare)
    return replace(data, summary=data.summary | {"source": dataset})


def _prepare(
    dataset: str,
    reading: dict[str, str | None],
    columns: tuple[str | None, str | None, str | None],
    sizes: dict[str, int | None],
    split_seed: int,
    keep_leaks: bool,
) -> TextClassificationData:
    """`load_text_classification`; `columns` are those of texts, labels and second texts."""
    source = read_source(dataset, **reading)
    rows = {name: read_rows(table, *columns) for name, table in source.tables.items()}
    of_the_source = [name for name in HELD_OUT if not reading[f"{name}_file"]]
    unpublished = _leave_out_unpublished(rows, of_the_source)
    cleaned = {name: clean(split, name, source.splits_given) for name, split in rows.items()}
    names = decide_label_names(cleaned)
    repeated = repetitions(cleaned["train"])
    overlap = remove_leaks(cleaned, keep_leaks)
    splits = complete_splits(cleaned, source.held_out_sizes, sizes, split_seed, names)
    check_trained_labels(splits, names)
    summary = {
        "source": dataset,
        **_describe_reading(source, rows, cleaned, unpublished),
        "repetitions_in_train": repeated,
        "overlap": overlap,
        **describe_splits(splits, missing_splits(cleaned), split_seed, names),
    }
    del source, rows, cleaned  # of large files each is as large as what is returned
    return TextClassificationData(
        **{name: splits.pop(name).to_dataset(names) for name in [*splits]},
        label_names=names,
        summary=summary,
    )


def _leave_out_unpublished(
    rows: dict[str, LabelledRows], names: list[str]
) -> dict[str, dict[str, int]]:
    """Take out of `rows` the splits whose labels their authors keep (GLUE's test sets); count them.

    A file of the user's own that lacks its labels is a mistake, which `clean` refuses.

    Args:
        names: of the splits that came with the data set.
    """
    found = {}
    for name in names:
        split = rows.get(name)
        if split is not None and split.class_names and not any(split.labels):
            del rows[name]
            found[name] = {"without_label": len(split)}
            notify(
                f"the {name} set has no published labels ({count_rows(len(split))}): left out. "
                f"{name} rows are taken out of the training rows."
            )
    return found


def _describe_reading(
    source: Source,
    read: dict[str, LabelledRows],
    cleaned: dict[str, LabelledRows],
    unpublished: dict[str, dict[str, int]],
) -> dict[str, Any]:
    """What data.json records of columns, rows read, and rows left out before leaks are looked for.

    Args:
        unpublished: rows of the splits that were left out for want of labels.
    """
    dropped = {name: split.dropped for name, split in cleaned.items()}
    return {
        "columns": {name: list(split.columns) for name, split in read.items()},
        "rows_read": source.rows_read or {name: len(split) for name, split in read.items()},
        "dropped": source.dropped | dropped | unpublished,
        "blank_texts": {name: count_blank(split) for name, split in read.items()},
    }
