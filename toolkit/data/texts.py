"""Texts without labels, for pretraining and language models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.data.columns import text_column as find_text_column
from toolkit.data.encoding import check_line_ends, decode, half_character
from toolkit.data.file_log import note_file
from toolkit.data.files import read_bytes
from toolkit.data.partition import check_taken
from toolkit.data.sources import read_source
from toolkit.data.splits import (
    held_out_size,
    is_blank,
    normalized,
    split_hash,
    stratified_order,
    take,
)
from toolkit.data.text_classification import load_text_classification
from toolkit.errors import UserError


@dataclass(frozen=True)
class Texts:
    """Texts to learn from and others to measure by; ``summary`` is what data.json records."""

    train: list[str]
    validation: list[str]
    summary: dict[str, Any]


def load_texts(
    dataset: str,
    *,
    text_column: str | None = None,
    validation_size: int | None = None,
    split_seed: int = 0,
) -> Texts:
    """Read texts and hold some out.

    Args:
        dataset: ``demo:reviews`` (its test reviews are left out altogether), a text file with one
            text per line (.txt, .txt.gz), a table (csv, tsv, json, jsonl, parquet), a folder of
            splits or a data set on the Hub.
        validation_size: texts to hold out; None: a tenth.

    Equal texts are read once, so none stands on both sides.

    Raises:
        UserError: whatever is wrong with the data, with file and row.
    """
    if dataset.startswith("demo:"):
        data = load_text_classification(
            dataset, validation_size=validation_size, split_seed=split_seed
        )
        train, validation = data.train["text"][:], data.validation["text"][:]
    else:
        texts = _read_texts(dataset, text_column)
        pool = list(dict.fromkeys(text for text in texts if not is_blank(text)))
        if len(pool) < 2:
            raise UserError(f"{dataset} holds {len(pool)} different texts; at least 2 are needed.")
        keys, no_labels = list(map(normalized, pool)), [""] * len(pool)
        order = stratified_order(keys, no_labels, split_seed)
        size = held_out_size(validation_size, len(pool), 1)
        held_out, rest = take(order, size)
        check_taken(held_out, rest, "validation", size)
        train = [pool[row] for row in rest.flat()]
        validation = [pool[row] for row in sorted(held_out)]
    sizes = {"train": len(train), "validation": len(validation)}
    hashes = {"train": _hash(train), "validation": _hash(validation)}
    return Texts(train, validation, {"source": dataset, "sizes": sizes, "sha256": hashes})


def _read_texts(dataset: str, text_column: str | None) -> list[str]:
    path = Path(dataset).expanduser()
    if path.name.endswith((".txt", ".txt.gz")):
        return _read_lines(path)
    table = read_source(dataset).tables["train"]
    column = find_text_column(list(table.columns), text_column, table.source)
    texts = []
    for row, text in enumerate(table.columns[column]):
        if text is not None and not isinstance(text, str):
            raise UserError(f"{table.place(row)}: {column} is {text!r:.60}, expected a text.")
        if wrong := half_character(text or ""):
            raise UserError(f"{table.place(row)}: {column} {wrong}.")
        texts.append(text or "")
    return texts


def _read_lines(path: Path) -> list[str]:
    text = decode(read_bytes(path), path)
    check_line_ends(text, path)
    lines = text.split("\n")
    note_file(path, format="lines", rows=len(lines) - (lines[-1] == ""))
    return [line.removesuffix("\r") for line in lines]


def _hash(texts: list[str]) -> str:
    return split_hash(texts, [""] * len(texts))
