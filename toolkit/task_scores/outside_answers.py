"""What the columns of somebody's file mean in each task: its answers, and the truth if given."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.data.files import Table
from toolkit.data.labels import label_name
from toolkit.data.suggest import near_names
from toolkit.errors import UserError
from toolkit.task_scores.outside_rows import Tested
from toolkit.task_scores.outside_tags import as_list, read_tags
from toolkit.task_scores.predictions import objects

Fields = dict[str, NDArray[Any]]
_SHOWN_LABELS = 20


@dataclass(frozen=True)
class Format:
    """How the file of a task is read.

    Args:
        inputs: columns that may hold what was asked.
        fields: the fields of the predictions (`toolkit.task_scores.predictions`), from the table,
            the row of every example, and the run.
        truth_columns: that may hold what is right; the first that is there is compared.
        truth: what such a column says of every example, in the form of the run's truth.
    """

    inputs: tuple[str, ...]
    fields: Callable[[Table, Sequence[int], Tested], Fields]
    truth_columns: tuple[str, ...] = ()
    truth: Callable[[Table, str, Sequence[int], Tested], Sequence[Hashable]] | None = None

    def check_truth(self, table: Table, rows: Sequence[int], like: Tested) -> None:
        """Compare the truth that the file brings with the run's.

        Raises:
            UserError: they differ, or a cell is no such truth; names the row. A column that is
                empty throughout says nothing.
        """
        column = next((name for name in self.truth_columns if name in table.columns), None)
        if column is None or self.truth is None:
            return
        if all(cell is None or cell == "" for cell in table.columns[column]):
            return  # the system did not know it
        found = self.truth(table, column, rows, like)
        pairs = zip(found, like.test.truth, strict=True)
        wrong = [place for place, (given, right) in enumerate(pairs) if given != right]
        if wrong:
            given, right = found[wrong[0]], like.test.truth[wrong[0]]
            raise UserError(
                f"{table.place(rows[wrong[0]])}: {column} is {given!r:.60}, but {like.folder} has "
                f"{right!r:.60} for this example ({len(wrong):,} of {len(rows):,} differ). The "
                "system was tested on something else, or the rows are in disorder; if the column "
                "is not the truth, leave it out."
            )


def _column(table: Table, *names: str) -> str:
    found = next((name for name in names if name in table.columns), None)
    if found is None:
        raise UserError(
            f"{table.source} has no column {names[0]!r}. Columns found: "
            f"{', '.join(table.columns)}.{near_names(names[0], table.columns)}"
        )
    return found


def label_ids(table: Table, column: str, like: Tested) -> dict[str, str] | None:
    """Names of the run by the numbers that stand in a column instead; None: it holds names.

    Numbers are taken for label ids where all of them can be, and no label is itself a number.
    """
    names = [str(name) for name in like.summary["data"]["label_names"]]
    ids = {str(number): name for number, name in enumerate(names)}
    if any(_plain(name) in ids or _is_number(name) for name in names):
        return None
    return ids if all(_plain(cell) in ids for cell in table.columns[column]) else None


def _plain(cell: Any) -> str | None:
    """`1`, `1.0`, `"1"` as "1"; None for what is no name at all."""
    try:
        return label_name(cell)
    except ValueError:
        return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _labels(table: Table, column: str, rows: Sequence[int], like: Tested) -> list[str]:
    names = [str(name) for name in like.summary["data"]["label_names"]]
    ids = label_ids(table, column, like)
    if ids is not None:
        return [ids[str(_plain(table.columns[column][row]))] for row in rows]
    return [_label(table, column, row, names) for row in rows]


def _label(table: Table, column: str, row: int, names: Sequence[str]) -> str:
    cell = table.columns[column][row]
    if isinstance(cell, str) and cell in names:
        return cell
    name = _plain(cell)
    if name in names:
        return str(name)
    shown = ", ".join(names[:_SHOWN_LABELS]) + (", …" if len(names) > _SHOWN_LABELS else "")
    message = f"{table.place(row)}: {column} is {cell!r:.60}, expected a label of the run: {shown}."
    if name is not None and _is_number(name) and not any(map(_is_number, names)):
        message += (
            f" Numbers are read as label ids only where all of them are, from 0 to "
            f"{len(names) - 1} in this order."
        )
    elif isinstance(cell, str):
        folded = {known.strip().casefold(): known for known in names}
        alike = folded.get(cell.strip().casefold())
        message += near_names(cell if alike is None else alike, names)
    raise UserError(message)


def _classes(table: Table, rows: Sequence[int], like: Tested) -> Fields:
    given = _labels(table, _column(table, "prediction"), rows, like)
    fields: Fields = {"prediction": objects(given)}
    column = next((name for name in ("confidence", "probability") if name in table.columns), None)
    if column is not None and any(cell not in ("", None) for cell in table.columns[column]):
        confidence = _numbers(table, column, rows, most=1)
        fields["confidence"] = confidence
        if len(like.summary["data"]["label_names"]) == 2:
            right = np.array([a == b for a, b in zip(given, like.test.truth, strict=True)])
            fields["truth_probability"] = np.where(right, confidence, 1 - confidence)
    return fields


def _texts(table: Table, column: str, rows: Sequence[int], like: Tested) -> list[str]:
    cells = table.columns[column]
    for row in rows:
        if not isinstance(cells[row], str):
            raise UserError(f"{table.place(row)}: {column} is {cells[row]!r:.60}, expected a text.")
    return [cells[row] for row in rows]


def _translations(table: Table, rows: Sequence[int], like: Tested) -> Fields:
    column = _column(table, "prediction", "hypothesis", "translation")
    return {"hypothesis": objects(_texts(table, column, rows, like))}


def _answers(table: Table, rows: Sequence[int], like: Tested) -> Fields:
    column = _column(table, "prediction")
    cells = ["" if cell is None else cell for cell in table.columns[column]]
    filled = Table({column: cells}, table.source, table.unit, table.positions)
    fields: Fields = {"prediction": objects(_texts(filled, column, rows, like))}
    if "context_hash" in like.test.fields:
        fields["context_hash"] = like.test.fields["context_hash"]
    return fields


def _right_answers(
    table: Table, column: str, rows: Sequence[int], like: Tested
) -> list[tuple[str, ...]]:
    """The run's answers where the cell holds the same ones, or one of them; else the cell's."""
    found = []
    for place, row in enumerate(rows):
        cell: Any = table.columns[column][row]
        right: Any = like.test.truth[place]
        if isinstance(cell, dict):  # {"text": [...], "answer_start": [...]}, as on the Hub
            cell = cell.get("text") or []
        several = as_list(cell)
        if several is None or cell in right:
            given = [str(cell)] if cell else []
            same = bool(given) and given[0] in right
        else:
            given = [str(text) for text in several]
            same = set(given) == set(right)
        found.append(right if same else tuple(given))
    return found


def _tags(table: Table, rows: Sequence[int], like: Tested) -> Fields:
    column = _column(table, "prediction", "predicted")
    return {
        "tokens": like.test.fields["tokens"],
        "predicted": objects(read_tags(table, column, rows, like)),
    }


def _losses(table: Table, rows: Sequence[int], like: Tested) -> Fields:
    own = {"nll": _numbers(table, _column(table, "nll"), rows)}
    for name in ("tokens", "words", "bytes"):
        if name == "tokens" or name in table.columns:
            own[name] = _numbers(table, _column(table, name), rows, whole=True)
    return {name: like.test.fields[name] for name in ("words", "bytes")} | own


def _numbers(
    table: Table,
    column: str,
    rows: Sequence[int],
    *,
    most: float = np.inf,
    whole: bool = False,
) -> NDArray[np.float64]:
    """Finite numbers from 0 to `most`."""
    values = np.empty(len(rows))
    for place, row in enumerate(rows):
        cell = table.columns[column][row]
        try:
            value = float(cell)
        except (TypeError, ValueError):
            value = np.nan
        if not (0 <= value <= most and np.isfinite(value)) or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            limit = f"from 0 to {most:g}" if np.isfinite(most) else "from 0 on"
            raise UserError(
                f"{table.place(row)}: {column} is {cell!r:.60}, expected {kind} {limit}."
            )
        values[place] = value
    return values


FORMATS = {
    "text-classification": Format(("text", "pair"), _classes, ("label", "truth", "gold"), _labels),
    "image-classification": Format(("image",), _classes, ("label", "truth", "gold"), _labels),
    "token-classification": Format(("tokens", "text"), _tags, ("gold", "truth", "tags"), read_tags),
    "question-answering": Format(
        ("question",), _answers, ("answers", "truth", "answer"), _right_answers
    ),
    "translation": Format(("source",), _translations, ("reference", "target", "truth"), _texts),
    "language-modeling": Format(("text",), _losses),
}
"""By task. Of pretraining there is none: what was masked only its run knows."""
