"""Sentences with a tag for every token: CoNLL files, tables of lists, the Hub, or embedded ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit.console import notify
from toolkit.data.columns import choose_column
from toolkit.data.encoding import check_line_ends, decode, half_character
from toolkit.data.file_log import note_file
from toolkit.data.files import Table, data_suffix, read_bytes, read_table
from toolkit.data.sources import SPLIT_NAMES, read_source
from toolkit.demo import entities
from toolkit.errors import UserError

TOKEN_NAMES = ("tokens", "words", "token", "word", "characters", "chars", "text", "sentence")
TAG_NAMES = ("ner_tags", "tags", "ner", "labels", "label", "tag", "entities")
# A token and its place in its word, as in the Weibo corpus: 酒0 店1.
_SEGMENTED = re.compile(r".+\d", re.DOTALL)


@dataclass(frozen=True)
class TaggedSentences:
    """Sentences of one split, as the source has them."""

    tokens: list[list[str]]
    tags: list[list[str]]
    place: Callable[[int, int], str]  # where a token of a sentence stands, for messages
    notes: dict[str, Any] = field(default_factory=dict)  # what reading changed, for data.json

    def __len__(self) -> int:
        return len(self.tokens)


def read_tagged(
    dataset: str,
    *,
    tokens_column: str | None = None,
    tags_column: str | None = None,
    validation_file: str | None = None,
    test_file: str | None = None,
) -> dict[str, TaggedSentences]:
    """Sentences by split name; "train" is always there.

    Args:
        dataset: demo:entities, CoNLL file, table (json, jsonl, parquet; csv and tsv with tokens and
            tags separated by spaces), folder of splits, or Hub name.

    Raises:
        UserError: nothing of that name, or it cannot be read; names file and line.
    """
    columns = (tokens_column, tags_column)
    splits = _read(dataset, columns)
    for split, file in (("validation", validation_file), ("test", test_file)):
        if file is None:
            continue
        if split in splits:
            raise UserError(f"{dataset} already has a {split} split; leave --{split}_file out.")
        splits[split] = _read_file(Path(file).expanduser(), columns)
    return splits


def _read(dataset: str, columns: tuple[str | None, str | None]) -> dict[str, TaggedSentences]:
    if dataset == entities.NAME:
        return {
            split: TaggedSentences(
                [tokens for tokens, _ in rows],
                [tags for _, tags in rows],
                lambda row, token: f"{entities.NAME}, row {row + 1}",
            )
            for split, rows in entities.read_entities().items()
        }
    if dataset.startswith("demo:"):
        raise UserError(f"unknown embedded data set {dataset!r}; there is {entities.NAME}.")
    path = Path(dataset).expanduser()
    if path.is_dir():
        if files := _conll_files(path):
            return {split: read_conll(file) for split, file in files.items()}
    elif path.is_file():
        return {"train": _read_file(path, columns)}
    tables = read_source(dataset).tables
    return {split: read_tagged_table(table, *columns) for split, table in tables.items()}


def _read_file(path: Path, columns: tuple[str | None, str | None]) -> TaggedSentences:
    if data_suffix(path) is None:
        return read_conll(path)
    return read_tagged_table(read_table(path), *columns)


def _conll_files(folder: Path) -> dict[str, Path]:
    """Files of a folder that hold splits and are no tables: train.txt, eng.train, dev.conll ..."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if not path.is_file() or path.name.startswith(".") or data_suffix(path) is not None:
            continue
        parts = re.split(r"[._-]", path.name.lower())
        splits = {SPLIT_NAMES[part] for part in parts if part in SPLIT_NAMES}
        if len(splits) != 1:
            continue
        split = splits.pop()
        if split in found:
            raise UserError(
                f"{folder} has more than one {split} file: {found[split].name}, {path.name}. "
                "Keep one of them."
            )
        found[split] = path
    if found and "train" not in found:
        raise UserError(
            f"{folder} holds {', '.join(file.name for file in found.values())} but no training "
            "file; expected one with 'train' in its name."
        )
    return found


def read_conll(path: Path) -> TaggedSentences:
    """One token a line, its tag in the last field, fields parted by tabs or spaces.

    A line without anything ends a sentence. Where every token of a file ends in a digit (its place
    in its word, as in the Weibo corpus), the digits are left out, which is said.

    Raises:
        UserError: a line with a token but no tag, or the other way round; no sentence.
    """
    note_file(path, format="conll")
    tokens: list[list[str]] = [[]]
    tags: list[list[str]] = [[]]
    lines: list[list[int]] = [[]]
    text = decode(read_bytes(path), path)
    check_line_ends(text, path)
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line.strip(" \t"):
            if tokens[-1]:
                for rows in (tokens, tags, lines):
                    rows.append([])
            continue
        fields = line.rstrip(" \t").split("\t") if "\t" in line else line.rstrip(" ").split(" ")
        if fields[0] == "-DOCSTART-":
            continue
        if len(fields) < 2 or not fields[0]:
            raise UserError(
                f"{path}, line {number}: found {line!r:.60}, expected a token, a tab or a space, "
                "and its tag, such as 北 B-LOC."
            )
        tokens[-1].append(fields[0])
        tags[-1].append(fields[-1].strip(" "))
        lines[-1].append(number)
    if not tokens[-1]:
        for rows in (tokens, tags, lines):
            rows.pop()
    if not tokens:
        raise UserError(f"{path} holds no sentence.")
    note_file(path, rows=len(tokens))
    notes: dict[str, Any] = {}
    if all(_SEGMENTED.fullmatch(token) for sentence in tokens for token in sentence):
        tokens = [[token[:-1] for token in sentence] for sentence in tokens]
        notes["digits_left_out_of_tokens"] = sum(map(len, tokens))
        notify(f"{path}: every token ends in a digit, its place in its word; left out.")
    return TaggedSentences(tokens, tags, lambda row, token: f"{path}, line {lines[row][token]}",
                           notes)  # fmt: skip


def read_tagged_table(
    table: Table, tokens_column: str | None = None, tags_column: str | None = None
) -> TaggedSentences:
    """Rows whose cells are lists, or texts with spaces between tokens and between tags.

    Raises:
        UserError: no such column, other cells, or another number of tags than of tokens.
    """
    tokens_name = _column(table, tokens_column, TOKEN_NAMES, "tokens")
    tags_name = _column(table, tags_column, TAG_NAMES, "tags")
    tokens, tags = [], []
    cells = zip(table.columns[tokens_name], table.columns[tags_name], strict=True)
    for row, (row_tokens, row_tags) in enumerate(cells):
        tokens.append(_list_of_texts(row_tokens, table.place(row), tokens_name))
        tags.append(_list_of_texts(row_tags, table.place(row), tags_name))
        if len(tokens[-1]) != len(tags[-1]):
            raise UserError(
                f"{table.place(row)}: {len(tokens[-1])} {tokens_name} but {len(tags[-1])} "
                f"{tags_name}; every token needs one tag."
            )
    return TaggedSentences(
        tokens, tags, lambda row, token: f"{table.place(row)}, token {token + 1}"
    )


def _list_of_texts(cell: Any, place: str, column: str) -> list[str]:
    if isinstance(cell, str):
        cell = cell.split()
    if not isinstance(cell, Sequence):
        raise UserError(f"{place}: {column} is {cell!r:.60}, expected a list of texts.")
    for item in cell:
        if not isinstance(item, str):
            number = isinstance(item, int)
            advice = " Numbers need names: write the tags themselves (B-PER)." if number else ""
            raise UserError(
                f"{place}: {column} holds {item!r:.60}, expected a list of texts.{advice}"
            )
        if wrong := half_character(item):
            raise UserError(f"{place}: {column} {wrong}: {item!r:.60}.")
    return list(cell)


def _column(table: Table, asked: str | None, common: Sequence[str], kind: str) -> str:
    advice = f"Name it with --{kind}_column."
    return choose_column(list(table.columns), asked, common, table.source, kind, advice)
