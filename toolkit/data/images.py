"""Images with labels, decoded once, in three splits, with everything noticed written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from toolkit.console import notify
from toolkit.data.image_decoding import Size
from toolkit.data.image_sources import ImageTable, read_image_source
from toolkit.data.image_store import PixelStore, content_hashes, decode_once
from toolkit.data.partition import complete_splits, describe_splits, missing_splits
from toolkit.data.rows import (
    HELD_OUT,
    LabelledRows,
    check_trained_labels,
    clean,
    count_rows,
    decide_label_names,
)
from toolkit.data.splits import find_overlap, repetitions
from toolkit.errors import UserError

MOST_LISTED = 20  # files that cannot be read, in a message


class ImageRows:
    """Rows of a split as the training loop and the evaluation read them.

    Args:
        pixels: of the whole data set, uint8 [images, channels, height, width].
        rows: which of them belong to the split.
        label: class id of every row.
        id: name of every row, the same in every run on the same data.
        image: file or row every image came from.
    """

    def __init__(
        self, pixels: Tensor, rows: np.ndarray, label: list[int], id: list[str], image: list[str]
    ) -> None:
        self.pixels, self.rows = pixels, rows
        self.columns: dict[str, list[Any]] = {"label": label, "id": id, "image": image}
        self.column_names = ["pixels", *self.columns]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: str | Sequence[int]) -> Any:
        """A column by its name; or by row numbers the pixels and labels of these rows."""
        if isinstance(key, str):
            return self.columns[key]
        chosen = np.asarray(key, dtype=np.int64)
        label = [self.columns["label"][row] for row in key]
        return {"pixels": self.pixels[torch.from_numpy(self.rows[chosen])], "label": label}


@dataclass(frozen=True)
class ImageData:
    """Three splits of images. `summary` is what data.json records."""

    train: ImageRows
    validation: ImageRows
    test: ImageRows
    label_names: list[str]  # in id order
    size: Size  # of the stored images
    summary: dict[str, Any]


def load_images(
    dataset: str,
    *,
    image_column: str | None = None,
    label_column: str | None = None,
    size: Size | None = None,
    train_size: int | None = None,
    validation_size: int | None = None,
    test_size: int | None = None,
    split_seed: int = 0,
    keep_leaks: bool = False,
    skip_damaged: bool = False,
) -> ImageData:
    """Read `dataset`, decode it, check it, and split it.

    Args:
        dataset: `demo:digits`, a folder of class folders (also below train, validation and test), a
            table with images or their paths, a folder of such tables, or a data set on the Hub.
        image_column, label_column: needed where the names do not tell.
        size: height and width for images that differ in size or are larger.
        train_size: train on the first so many of a fixed stratified order.
        validation_size, test_size: images of these splits. Splits that the source does not have are
            made from its training images, a tenth each by default.
        split_seed: seed of the splits and of the stratified order.
        keep_leaks: keep training images whose file is also in validation or test.
        skip_damaged: leave out files that cannot be read as images.

    The label order is decided by the training images (or by the data set where it names its
    classes).

    Raises:
        UserError: whatever is wrong with the data, with file and row.
    """
    source = read_image_source(dataset, image_column, label_column)
    tables = {name: source.tables[name] for name in ("train", *HELD_OUT) if name in source.tables}
    contents = [content for table in tables.values() for content in table.contents]
    places = [place for table in tables.values() for place in table.places]
    hashes = content_hashes(contents)
    splits = _labelled(tables, hashes, places)
    splits = {name: clean(split, name, len(splits) > 1) for name, split in splits.items()}
    names = decide_label_names(splits)
    dropped = {name: split.dropped["without_label"] for name, split in splits.items()}

    store = decode_once(contents, hashes, size)
    _say_changes(store.changes)
    bad = _leave_out_bad(splits, store.bad, places, skip_damaged)
    repeated = repetitions(splits["train"])["exact"]
    overlap = _remove_leaks(splits, keep_leaks)
    made = missing_splits(splits)
    sizes = {"train": train_size, "validation": validation_size, "test": test_size}
    splits = complete_splits(splits, source.held_out_sizes, sizes, split_seed, names)
    check_trained_labels(splits, names)
    summary = {
        "source": dataset,
        "columns": {name: list(table.columns) for name, table in tables.items()},
        "rows_read": {name: len(table.contents) for name, table in tables.items()},
        "dropped": {"without_label": dropped, "not_readable": bad},
        "stored_size": list(store.size),
        "changes": store.changes,
        "repetitions_in_train": repeated,
        "overlap": overlap,
        **describe_splits(splits, made, split_seed, names),
    }
    rows = {name: _image_rows(split, names, store, places) for name, split in splits.items()}
    return ImageData(**rows, label_names=names, size=store.size, summary=summary)


def _labelled(
    tables: dict[str, ImageTable], hashes: list[str], places: list[str]
) -> dict[str, LabelledRows]:
    """The splits as rows whose texts are the hashes of their files; rows count over all tables."""
    splits, start = {}, 0
    for name, table in tables.items():
        end = start + len(table.contents)
        own = hashes[start:end]
        splits[name] = LabelledRows(
            ids=[f"{digest[:12]}-{row + 1}" for row, digest in enumerate(own)],
            texts=own,
            keys=own,
            labels=table.labels,
            place=places.__getitem__,
            rows=list(range(start, end)),
            columns=table.columns,
            class_names=table.class_names,
            origin=table.origin,
        )
        start = end
    return splits


def _image_rows(
    split: LabelledRows, names: list[str], store: PixelStore, places: list[str]
) -> ImageRows:
    images = [places[row] for row in split.rows]
    return ImageRows(
        store.pixels, np.asarray(split.rows), split.label_ids(names), split.ids, images
    )


def _leave_out_bad(
    splits: dict[str, LabelledRows], bad: dict[int, str], places: list[str], skip: bool
) -> dict[str, int]:
    """Take rows whose file is no image out of every split; how many they were.

    Raises:
        UserError: there are some and they are not to be skipped, or nothing else is left.
    """
    counts = {}
    listed = [f"  {places[row]}: {problem}" for row, problem in sorted(bad.items())]
    more = [f"  and {len(listed) - MOST_LISTED} more"] if len(listed) > MOST_LISTED else []
    text = "\n".join([*listed[:MOST_LISTED], *more])
    if bad and not skip:
        raise UserError(
            f"{len(bad)} of {len(places)} files cannot be read as images:\n{text}\n"
            "Mend or remove them, or go on without them: --skip-damaged."
        )
    if bad:
        notify(f"warning: left out, as they cannot be read as images:\n{text}")
    for name, split in splits.items():
        kept = [i for i, row in enumerate(split.rows) if row not in bad]
        if not kept:
            raise UserError(f"no {name} image can be read.")
        counts[name] = len(split) - len(kept)
        splits[name] = split.select(kept)
    return counts


def _remove_leaks(splits: dict[str, LabelledRows], keep: bool) -> dict[str, dict[str, int]]:
    """Take training images that are also in a given held-out split out; count them.

    Raises:
        UserError: no training image would be left.
    """
    report: dict[str, dict[str, int]] = {}
    leaked: set[int] = set()
    train = splits["train"]
    for name in HELD_OUT:
        if name not in splits:
            continue
        overlap = find_overlap(train, splits[name])
        removed = 0 if keep else len(overlap.training_rows)
        report[name] = {
            "in_train": overlap.exact,
            "with_opposite_label": overlap.opposite_label,
            "training_rows_removed": removed,
        }
        leaked |= overlap.training_rows
        if overlap.exact:
            notify(
                f"warning: {overlap.exact} of {len(splits[name])} {name} images are also training "
                f"images, byte for byte ({overlap.opposite_label} with another label); "
                f"{count_rows(len(overlap.training_rows))} of training "
                f"{'kept' if keep else 'removed'}."
            )
    if leaked and not keep:
        if len(leaked) == len(train):
            raise UserError("every training image is also in the validation or test images.")
        splits["train"] = train.select([i for i in range(len(train)) if i not in leaked])
    if report:  # an image may be in both
        report["train"] = {"rows_removed": len(train) - len(splits["train"])}
    return report


def _say_changes(changes: dict[str, int]) -> None:
    words = {
        "turned": "turned as their EXIF orientation says",
        "transparent": "with transparency: laid on white",
        "16-bit": "of 16 bits a channel: scaled to 8",
        "gray": "in gray: copied to three channels",
        "resized": "brought to another height and width",
    }
    said = [f"{count:,} {words[change]}" for change, count in changes.items() if count]
    if said:
        notify(f"images: {'; '.join(said)}")
