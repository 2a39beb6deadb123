"""Tokens of many texts: made by all cores, kept on the disk, found again by texts and tokenizer."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import datasets
import pyarrow as pa

from toolkit.console import notify
from toolkit.data.arrow_files import (
    LARGE,
    ROWS_A_BATCH,
    code_of_data,
    kept,
    open_rows,
    remove_unused,
    write_rows,
)
from toolkit.data.cache import CannotKeepError
from toolkit.progress import Display, progress_bar

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

Encode = Callable[[dict[str, list[Any]]], dict[str, list[Any]]]
"""Columns of texts to columns of tokens."""

_KINDS = {
    "input_ids": pa.list_(pa.int32()),
    "token_type_ids": pa.list_(pa.int8()),
    "length": pa.int64(),
    "full_length": pa.int64(),
}
_TEXTS = ("text", "pair")


def worth_keeping(splits: Iterable[datasets.Dataset]) -> bool:
    """Whether there are so many texts that their tokens are better kept on the disk."""
    return sum(split.data.nbytes for split in splits) >= LARGE


def with_tokens(
    rows: datasets.Dataset,
    encode: Encode,
    tokenizer: PreTrainedTokenizerBase,
    limit: int,
    *,
    keep: bool,
) -> datasets.Dataset:
    """Rows with the columns that `encode` makes of their texts.

    Where the cache cannot be written, that is said and they stay in memory.

    Args:
        encode: depends on `tokenizer` and `limit` alone.
        keep: they are encoded once: kept in the user's cache and read from there.
    """
    names = [name for name in _TEXTS if name in rows.column_names]
    texts = rows.select_columns(names)
    identity = _identity(tokenizer) if keep else None
    tokens = None
    if identity is not None:
        described = f"{_content(texts)} {identity} {limit} {code_of_data()}"
        key = hashlib.sha256(described.encode()).hexdigest()[:32]
        try:
            tokens = _kept(key, texts, encode)
        except CannotKeepError as error:
            notify(f"warning: {error} Until then it is tokenised anew every time.")
    if tokens is None:
        batches = [*_encoded(texts, encode)]
        schema = batches[0].schema if batches else _schema(encode, names)
        tokens = datasets.Dataset(pa.Table.from_batches(batches, schema))
    return datasets.concatenate_datasets([rows, tokens], axis=1)


def _kept(key: str, texts: datasets.Dataset, encode: Encode) -> datasets.Dataset:
    def build(folder: Path) -> None:
        with progress_bar("tokenising", len(texts)) as display, _all_cores():
            schema = _schema(encode, texts.column_names)
            write_rows(folder / "tokens.arrow", schema, _encoded(texts, encode, display))
        remove_unused(folder.parent)

    def opened(folder: Path) -> datasets.Dataset:
        tokens = open_rows(folder / "tokens.arrow")
        if len(tokens) != len(texts):
            raise ValueError("rows are missing")
        return tokens

    return kept(f"tokens/{key}", build, opened)


def _content(texts: datasets.Dataset) -> str:
    """A hash of the columns as they are now, whatever a summary says they were."""
    digest = hashlib.sha256()
    for start in range(0, len(texts), ROWS_A_BATCH):
        digest.update(json.dumps(texts[start : start + ROWS_A_BATCH]).encode())
    return digest.hexdigest()


def _encoded(
    texts: datasets.Dataset, encode: Encode, display: Display | None = None
) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(texts), ROWS_A_BATCH):
        batch = texts[start : start + ROWS_A_BATCH]
        columns = encode(batch)
        yield pa.record_batch({name: pa.array(columns[name], _KINDS[name]) for name in columns})
        if display is not None:
            display.advance(len(columns["length"]))


def _schema(encode: Encode, names: list[str]) -> pa.Schema:
    return pa.schema([(name, _KINDS[name]) for name in encode({name: ["a"] for name in names})])


def _identity(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """All that the ids depend on; None for a tokenizer that does not tell (one in Python)."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None
    state = json.loads(backend.to_str())
    state["truncation"] = state["padding"] = None  # of the last call
    settings = [
        tokenizer.model_input_names,
        tokenizer.truncation_side,
        tokenizer.split_special_tokens,
    ]
    libraries = [version("tokenizers"), version("transformers")]
    described = json.dumps([type(tokenizer).__name__, state, settings, libraries])
    return hashlib.sha256(described.encode()).hexdigest()


@contextmanager
def _all_cores() -> Iterator[None]:
    """Recipes keep tokenizers to one core, because data loaders fork; none does meanwhile."""
    name = "TOKENIZERS_PARALLELISM"
    before = os.environ.get(name)
    os.environ[name] = "true"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
