"""Where a data set comes from: embedded, a file, a folder of splits, or the Hub."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from toolkit.console import notify
from toolkit.data.files import Table, data_suffix, named, read_table
from toolkit.data.quiet import quiet_datasets
from toolkit.data.suggest import near_names
from toolkit.demo import reviews
from toolkit.errors import UserError, first_line
from toolkit.network import hub_failure, is_hub_name, offline_command

SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
_REVISION = re.compile(r"@[\w./-]+$")  # of a name on the Hub
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")  # as the Hub names parts of a split


@dataclass(frozen=True)
class Source:
    """Tables by split name; "train" is always there."""

    tables: dict[str, Table]
    dropped: dict[str, Any] = field(default_factory=dict)  # what reading left out, and why
    rows_read: dict[str, int] | None = None  # where reading left something out
    held_out_sizes: dict[str, int] = field(default_factory=dict)  # splits that are fixed, not given

    @property
    def splits_given(self) -> bool:
        """False where all splits have to be made from one table."""
        return len(self.tables) > 1


def read_source(
    dataset: str,
    *,
    hub_config: str | None = None,
    validation_file: str | None = None,
    test_file: str | None = None,
) -> Source:
    """Read `dataset`, and the held-out files given beside it.

    Args:
        hub_config: which configuration of a data set on the Hub that has several.

    Raises:
        UserError: nothing of that name, or it cannot be read.
    """
    source = _read(dataset, hub_config)
    tables = dict(source.tables)
    for name, file in (("validation", validation_file), ("test", test_file)):
        if file is None:
            continue
        if name in tables:
            raise UserError(f"{dataset} already has a {name} split; leave --{name}_file out.")
        tables[name] = read_table(Path(file).expanduser())
    return replace(source, tables=tables)


def source_files(places: Sequence[str]) -> list[Path] | None:
    """All files that `read_source` reads; None where not all of them are the user's own.

    Args:
        places: the data set, and the held-out files given beside it.
    """
    files: list[Path] = []
    for place in places:
        path = Path(place).expanduser()
        if path.is_dir():
            files += chain.from_iterable(_files_of_splits(path).values())
        elif path.is_file():
            files.append(path)
        else:  # embedded, on the Hub, or missing
            return None
    return files


def _read(dataset: str, hub_config: str | None) -> Source:
    if dataset.startswith("demo:"):
        return _read_demo(dataset)
    path = Path(dataset).expanduser()
    if path.is_dir():
        return _read_folder(path)
    if path.is_file() or looks_like_a_path(dataset):
        return Source({"train": read_table(path)})
    return _read_hub(dataset, hub_config)


def looks_like_a_path(name: str) -> bool:
    """True for what can be no name on the Hub."""
    return data_suffix(Path(name)) is not None or not is_hub_name(_REVISION.sub("", name))


def _read_demo(name: str) -> Source:
    if name != reviews.NAME:
        raise UserError(f"unknown embedded data set {name!r}; there is {reviews.NAME}.")
    texts, labels, counts = reviews.read_reviews()
    columns = {"text": texts, "label": labels}
    numbers = list(range(1, len(texts) + 1))
    table = Table(columns, name, "row", numbers, {"label": reviews.LABEL_NAMES})
    rows_read = {"train": counts.pop("rows_read")}
    return Source({"train": table}, counts, rows_read, reviews.HELD_OUT_SIZES)


def _read_folder(folder: Path) -> Source:
    files = _files_of_splits(folder)
    if "train" not in files:
        raise UserError(
            f"{folder} holds no training file; expected train.csv (or .tsv, .json, .jsonl, "
            ".parquet, each also .gz) and, if you have them, validation and test files beside it."
        )
    return Source({split: _join(paths, split) for split, paths in files.items()})


def _files_of_splits(folder: Path) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and data_suffix(path) is not None and not path.name.startswith("."):
            stem = _SHARD.sub("", path.name.split(".", 1)[0])
            if split := SPLIT_NAMES.get(stem.lower()):
                files.setdefault(split, []).append(path)
    return files


def _join(paths: list[Path], split: str) -> Table:
    if len(paths) == 1:
        return read_table(paths[0])
    if not all(_SHARD.search(path.name.split(".", 1)[0]) for path in paths):
        names = ", ".join(path.name for path in paths)
        raise UserError(
            f"{paths[0].parent} has more than one {split} file: {names}. Keep one of them."
        )
    tables = [read_table(path) for path in paths]
    for table in tables[1:]:
        if list(table.columns) != list(tables[0].columns):
            raise UserError(f"{table.source} has other columns than {tables[0].source}.")
    columns = {
        name: [cell for t in tables for cell in t.columns[name]] for name in tables[0].columns
    }
    first, parts = tables[0], tuple(tables)
    count = sum(map(len, tables))
    source = f"{paths[0].parent}/{split}"
    return _Joined(columns, source, "row", range(1, count + 1), first.class_names, parts)


@dataclass(frozen=True)
class _Joined(Table):
    """Rows of several files, one after the other; each is named by its own."""

    parts: tuple[Table, ...] = ()

    def place(self, row: int) -> str:
        """Where row `row` stands: file and line."""
        for part in self.parts:
            if row < len(part):
                return part.place(row)
            row -= len(part)
        raise IndexError(row)


def _read_hub(name: str, config: str | None) -> Source:
    """Of `owner/name@revision` that branch, tag or commit."""
    failure = hub_failure()
    import datasets

    repository, _, revision = name.partition("@")
    asked = {"revision": revision} if revision else {}
    try:
        with quiet_datasets():
            loaded = datasets.load_dataset(
                *[repository] if config is None else [repository, config], **asked
            )
    except Exception as error:  # the library raises its own, huggingface_hub's and plain OS errors
        raise UserError(_hub_error(name, failure, error)) from error
    splits = _named_splits(loaded, name)
    tables = {split: _table_of(dataset, f"{name} ({split})") for split, dataset in splits.items()}
    return Source(tables)


def _named_splits(loaded: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Splits by the names used here; the only one is to train on, whatever it is called.

    Raises:
        UserError: none of several is called train, or two have one name here.
    """
    if len(loaded) == 1 and "train" not in loaded:
        ((only, rows),) = loaded.items()
        notify(f"{name} has one split only, {only}: it is divided into train, validation and test.")
        return {"train": rows}
    splits: dict[str, Any] = {}
    for key, rows in loaded.items():
        split = SPLIT_NAMES.get(key)
        if split in splits:
            raise UserError(f"data set {name!r} has more than one {split} split: {_names(loaded)}.")
        if split is not None:
            splits[split] = rows
    if "train" not in splits:
        raise UserError(f"data set {name!r} has no train split, only {_names(loaded)}.")
    return splits


def _names(loaded: Mapping[str, Any]) -> str:
    return ", ".join(loaded)


def _hub_error(name: str, failure: str | None, error: Exception) -> str:
    here = [path.name for path in Path.cwd().iterdir()]
    advice = (
        f"Works offline: `{offline_command()}`, or a file of your own: `--dataset FILE.csv`."
        f"{near_names(name, here)}"
    )
    if failure is not None:
        return f"cannot fetch the data set {name!r}: {failure}. {advice}"
    return f"cannot fetch the data set {name!r}: {first_line(error)} {advice}"


def _table_of(dataset: Any, source: str) -> Table:
    """Columns of a `datasets.Dataset`, with class names for ids (None for -1: unpublished)."""
    import datasets

    columns, class_names = {}, {}
    for name, feature in dataset.features.items():
        cells = dataset.data.column(name).to_pylist()
        classes = getattr(feature, "feature", feature)  # of a list of ids, what is in it
        if isinstance(classes, datasets.ClassLabel):
            class_names[name] = list(classes.names)
            cells = [named(cell, classes.names) for cell in cells]
        columns[name] = cells
    return Table(columns, source, "row", list(range(1, len(dataset) + 1)), class_names)
