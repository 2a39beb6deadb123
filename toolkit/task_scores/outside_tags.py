"""Tags of somebody's file: in any of the usual schemes, checked by a run's tokens and types."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any

from toolkit.data.files import Table
from toolkit.data.tag_schemes import OUTSIDE, bio_tags, detect_scheme, read_spans, split_tag
from toolkit.errors import UserError
from toolkit.task_scores.outside_rows import Tested


def read_tags(
    table: Table, column: str, rows: Sequence[int], like: Tested
) -> list[tuple[str, ...]]:
    """The tags of every sentence in BIO, whatever scheme the column is written in.

    Args:
        column: cells are lists, or texts: tags apart by spaces, or such a list.

    Raises:
        UserError: another number of tags than tokens, no tag, a type that the run does not have, or
            prefixes of no scheme; names the row.
    """
    kinds = sorted({split_tag(str(tag))[1] for tag in like.summary["data"]["label_names"]} - {""})
    sentences = []
    for row, tokens in zip(rows, like.test.fields["tokens"], strict=True):
        tags = _read_cell(table, column, row)
        for tag in tags:
            _check(tag, kinds, f"{table.place(row)}: {column}")
        if len(tags) != len(tokens):
            raise UserError(
                f"{table.place(row)}: {len(tags)} tags in {column} for {len(tokens)} tokens "
                f"({' '.join(tokens):.60}); each needs its own."
            )
        sentences.append(tags)
    if all(tag == OUTSIDE for tags in sentences for tag in tags):
        return [tuple(tags) for tags in sentences]
    try:
        scheme = detect_scheme(sentences)
    except ValueError as error:
        raise UserError(f"{table.source}: {column}: {error}.") from error
    if scheme in ("bio", "iob1"):  # read alike: an I that continues nothing begins an entity
        return [tuple(tags) for tags in sentences]
    return [tuple(bio_tags(read_spans(tags, scheme)[0], len(tags))) for tags in sentences]


def as_list(cell: Any) -> list[Any] | None:
    """A cell that is a list, or a text that is one in JSON or in Python; None for others."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        for parse in (json.loads, ast.literal_eval):
            try:
                cell = parse(cell.strip())
                break
            except (ValueError, SyntaxError):
                continue
    return cell if isinstance(cell, list) else None


def _read_cell(table: Table, column: str, row: int) -> list[str]:
    cell = table.columns[column][row]
    tags = as_list(cell)
    if tags is None and isinstance(cell, str) and not cell.lstrip().startswith("["):
        tags = cell.split()
    if tags is None or not all(isinstance(tag, str) for tag in tags):
        raise UserError(
            f"{table.place(row)}: {column} is {cell!r:.60}, expected one tag for every token, "
            'apart by spaces or as a list such as ["B-PER", "O"].'
        )
    return tags


def _check(tag: str, kinds: Sequence[str], where: str) -> None:
    try:
        kind = split_tag(tag)[1]
    except ValueError as error:
        raise UserError(f"{where}: {error}.") from error
    if kind and kind not in kinds:
        raise UserError(f"{where} holds {tag!r}, expected a type of the run: {', '.join(kinds)}.")
