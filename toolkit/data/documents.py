"""Documents without labels, from anywhere, in three splits: what language models learn from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import datasets

from toolkit.console import notify
from toolkit.data.columns import text_column as find_text_column
from toolkit.data.encoding import check_line_ends, decode, half_character
from toolkit.data.file_log import note_file
from toolkit.data.files import Table, read_bytes, read_table
from toolkit.data.partition import complete_splits, missing_splits, remove_leaks
from toolkit.data.rows import LabelledRows
from toolkit.data.sources import SPLIT_NAMES, read_source
from toolkit.data.splits import is_blank, normalized, repetitions, split_hash
from toolkit.errors import UserError

Unit = Literal["line", "paragraph", "article", "file"]

TEXT_SUFFIXES = (".txt", ".md", ".txt.gz", ".md.gz")
# The title of an article of WikiText stands alone between empty lines; sections have "= = … = =".
_TITLE = re.compile(r"\s*= [^=\s](?:.*[^=\s])? =\s*")
_NO_LABEL = "document"  # documents have none; stratified splits want one


@dataclass(frozen=True)
class Documents:
    """Three splits with the columns id and text; `summary` is what data.json records."""

    train: datasets.Dataset
    validation: datasets.Dataset
    test: datasets.Dataset
    summary: dict[str, Any]


@dataclass(frozen=True)
class _Source:
    """Tables by split ("train" is always there); a document never reaches into the next table."""

    tables: dict[str, list[Table]]
    dropped: dict[str, Any] = field(default_factory=dict)
    held_out_sizes: dict[str, int] = field(default_factory=dict)


def load_documents(
    dataset: str,
    *,
    hub_config: str | None = None,
    unit: Unit = "line",
    text_column: str | None = None,
    held_out_files: dict[str, str | None] | None = None,
    sizes: dict[str, int | None] | None = None,
    split_seed: int = 0,
    keep_leaks: bool = False,
) -> Documents:
    """Read `dataset`, make documents of its lines, and split them.

    Args:
        dataset: `demo:reviews`, a text file (.txt, .md), a table (csv, tsv, json, jsonl, parquet;
            all also .gz), a folder of text files, of splits (train.txt, validation.csv) or with
            subfolders named like splits, or a data set on the Hub.
        hub_config: configuration of a data set on the Hub.
        unit: what one document is; see `join_lines`.
        text_column: of a table, where the names do not tell.
        held_out_files: files of the splits "validation" and "test", where given beside `dataset`.
        sizes: documents of every split; a missing split is made of so many training documents, a
            tenth by default. `demo:reviews` has those of the classification recipes.
        split_seed: seed of the splits and of the order of the training documents.
        keep_leaks: keep training documents that also stand in validation or test.

    Raises:
        UserError: whatever is wrong with the data, with file and line.
    """
    source = _read(dataset, hub_config)
    for name, file in (held_out_files or {}).items():
        if file is not None:
            if name in source.tables:
                raise UserError(f"{dataset} already has a {name} split; leave --{name}_file out.")
            path = Path(file).expanduser()
            source.tables[name] = [_read_text(path) if _is_text(path) else read_table(path)]
    read = {name: _to_rows(tables, unit, text_column) for name, tables in source.tables.items()}
    splits = {name: _without_blank(split, name) for name, split in read.items()}
    repeated = repetitions(splits["train"])
    overlap = remove_leaks(splits, keep_leaks)
    made = missing_splits(splits)
    if not source.held_out_sizes:
        _check_enough(dataset, len(splits["train"]), made, unit)
    wanted = {"train": None, "validation": None, "test": None} | (sizes or {})
    final = complete_splits(splits, source.held_out_sizes, wanted, split_seed, [_NO_LABEL])
    summary = {
        "source": dataset,
        "hub_config": hub_config,
        "document": unit,
        "documents_read": {name: len(split) for name, split in read.items()},
        "dropped": source.dropped
        | {name: {"without_text": len(read[name]) - len(split)} for name, split in splits.items()},
        "repetitions_in_train": {
            key: count for key, count in repeated.items() if key in ("exact", "normalized")
        },
        "overlap": overlap,
        "splits_made": made,
        "split_seed": split_seed,
        "sizes": {name: len(split) for name, split in final.items()},
        "characters": {name: sum(map(len, split.texts)) for name, split in final.items()},
        "sha256": {name: split_hash(s.texts, [""] * len(s)) for name, s in final.items()},
    }
    columns = {
        name: datasets.Dataset.from_dict({"id": split.ids, "text": list(split.texts)})
        for name, split in final.items()
    }
    return Documents(**columns, summary=summary)


def join_lines(lines: Sequence[str], unit: Unit) -> list[tuple[int, str]]:
    """Documents of consecutive lines, each with the number of its first line (0-based).

    Args:
        lines: a line end at their end is not part of them.
        unit: "line": every line is a document; "paragraph": lines up to an empty one; "article":
            lines up to the next heading ` = Title = ` that stands between empty lines, as WikiText
            has them; "file": all lines.
    """
    lines = [line.rstrip("\r\n") for line in lines]
    if unit == "line":
        return list(enumerate(lines))
    blank = [is_blank(line) for line in lines]
    starts = [0]
    if unit == "paragraph":
        starts += [i for i in range(1, len(lines)) if blank[i - 1] and not blank[i]]
    elif unit == "article":
        closed = [*blank[1:], True]
        starts += [
            i
            for i in range(1, len(lines))
            if blank[i - 1] and closed[i] and _TITLE.fullmatch(lines[i])
        ]
    ends = [*starts[1:], len(lines)]
    documents = [(a, "\n".join(lines[a:b])) for a, b in zip(starts, ends, strict=True)]
    return [(first, text.strip("\n")) for first, text in documents if not is_blank(text)]


def _read(dataset: str, hub_config: str | None) -> _Source:
    path = Path(dataset).expanduser()
    if hub_config is not None and (path.exists() or dataset.startswith("demo:")):
        raise UserError(f"--hub_config {hub_config}: {dataset} is not on the Hub; leave it out.")
    if path.is_dir():
        files = _text_files(path)
        if files is not None:
            return _Source({split: list(map(_read_text, paths)) for split, paths in files.items()})
    elif _is_text(path):
        return _Source({"train": [_read_text(path)]})
    source = read_source(dataset, hub_config=hub_config)
    tables = {name: [table] for name, table in source.tables.items()}
    return _Source(tables, source.dropped, source.held_out_sizes)


def _is_text(path: Path) -> bool:
    return path.name.lower().endswith(TEXT_SUFFIXES)


def _text_files(folder: Path) -> dict[str, list[Path]] | None:
    """Text files by split: named like splits, in folders named like splits, or all to train on.

    None where the folder holds no text files.

    Raises:
        UserError: there are splits, but nothing to train on.
    """
    here = [path for path in _visible(folder) if path.is_file() and _is_text(path)]
    splits: dict[str, list[Path]] = {}
    for path in here:
        if split := SPLIT_NAMES.get(path.name.split(".", 1)[0].lower()):
            splits.setdefault(split, []).append(path)
    for path in _visible(folder):
        if path.is_dir() and (split := SPLIT_NAMES.get(path.name.lower())):
            files = [file for file in sorted(path.rglob("*")) if file.is_file() and _is_text(file)]
            splits.setdefault(split, []).extend(files)
    splits = {split: files for split, files in splits.items() if files}
    if not splits:
        return {"train": here} if here else None
    if "train" not in splits:
        raise UserError(
            f"{folder} holds text files for {' and '.join(splits)}, but none to train on; expected "
            "train.txt or a folder train beside them."
        )
    return splits


def _visible(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]


def _read_text(path: Path) -> Table:
    text = decode(read_bytes(path), path)
    check_line_ends(text, path)
    lines = text.split("\n")
    note_file(path, format="lines", rows=len(lines) - (lines[-1] == ""))
    return Table({"text": lines}, str(path), "line", list(range(1, len(lines) + 1)))


def _to_rows(tables: list[Table], unit: Unit, text_column: str | None) -> LabelledRows:
    texts: list[str] = []
    ids: list[str] = []
    labels: list[str] = []
    places: list[Callable[[], str]] = []
    for table in tables:
        asked = None if _is_text(Path(table.source)) else text_column
        column = find_text_column(list(table.columns), asked, table.source)
        lines = _checked_texts(table, column)
        # Where the source knows classes, splits are stratified as a classifier's are.
        of_class = table.columns["label"] if "label" in table.class_names else None
        for first, text in join_lines(lines, unit):
            number = len(texts) + 1
            ids.append(f"{hashlib.sha256(text.encode()).hexdigest()[:12]}-{number}")
            texts.append(text)
            labels.append((of_class[first] if of_class and unit == "line" else "") or _NO_LABEL)
            places.append(partial(table.place, first))
    return LabelledRows(
        ids=ids,
        texts=texts,
        keys=list(map(normalized, texts)),
        labels=labels,
        place=lambda row: places[row](),
        rows=list(range(len(texts))),
        columns=("text", ""),
        class_names=None,
    )


def _checked_texts(table: Table, column: str) -> list[str]:
    texts = []
    for row, text in enumerate(table.columns[column]):
        if text is not None and not isinstance(text, str):
            raise UserError(f"{table.place(row)}: {column} is {text!r:.60}, expected a text.")
        if wrong := half_character(text or ""):
            raise UserError(f"{table.place(row)}: {column} {wrong}.")
        texts.append(text or "")
    return texts


def _without_blank(split: LabelledRows, name: str) -> LabelledRows:
    kept = [row for row, text in enumerate(split.texts) if not is_blank(text)]
    if not kept:
        raise UserError(f"{split.place(0)}: the {name} split holds no text.")
    return split.select(kept)


def _check_enough(dataset: str, found: int, made: list[str], unit: Unit) -> None:
    if made and found <= len(made):
        raise UserError(
            f"{dataset} holds {found} document{'s' if found > 1 else ''} (--documents {unit}), too "
            f"few to hold some out for {' and '.join(made)}. Cut it up otherwise "
            "(--documents line, paragraph, article or file), or give "
            f"{' and '.join(f'--{name}_file' for name in made)}."
        )
    if made:
        notify(f"{' and '.join(made)} documents are split off from the {found:,} of {dataset}")
