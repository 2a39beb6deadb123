"""Labels as users write them, and the one stable order that turns them into class ids."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any
from unicodedata import decimal

import numpy as np
import numpy.typing as npt

from toolkit.errors import UserError

# White space, and characters that show nothing, at either end.
_EMPTY = "[\\s\u200b\u200c\u200d\u2060\ufeff]+"
_AROUND = re.compile(rf"^{_EMPTY}|{_EMPTY}$")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def label_name(value: Any) -> str | None:
    """The name of a class from one cell, None where the cell says nothing.

    Spaces and invisible characters around are dropped; `1`, `1.0`, `"1"` and `" 1 "` are one label,
    as are True and "true".

    Raises:
        ValueError: the cell holds something that cannot name a class (a list, an object).
    """
    numbers = (float, np.floating, Decimal)
    if value is None or (isinstance(value, numbers) and math.isnan(value)):
        return None
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, str | int | float | np.number | Decimal):
        text = _AROUND.sub("", _decimal(value) if isinstance(value, Decimal) else str(value))
        if _NUMBER.fullmatch(text):
            return _plain_number(text)
        return text.lower() if text.lower() in {"true", "false"} else text or None
    raise ValueError(f"{value!r:.60}, which cannot be a label")


def _plain_number(text: str) -> str:
    """Write 1.0 as 1, +3 as 3, digits of full width as ASCII.

    Other zeros stay: 007 may be a code, and 1.10 is another section or version than 1.1.
    """
    digits = (str(decimal(c)) if c.isdecimal() else c for c in text.removeprefix("+"))
    text = "".join(digits)
    whole, _, fraction = text.partition(".")
    if not fraction.strip("0"):
        text = whole
    return "0" if text == "-0" else text


def _decimal(value: Decimal) -> str:
    """Without an exponent, and without the zeros that a column's fixed number of places adds."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def label_order(names: Iterable[str]) -> list[str]:
    """Distinct names in the order of class ids: by value where all are numbers, else sorted."""
    distinct = sorted(set(names))
    if all(_NUMBER.fullmatch(name) for name in distinct):
        return sorted(distinct, key=lambda name: (float(name), name))
    return distinct


def class_counts(labels: Sequence[int], label_names: Sequence[str]) -> dict[str, int]:
    """How many rows each class has, in id order, classes without rows included."""
    counts = np.bincount(np.asarray(labels, dtype=np.int64), minlength=len(label_names))
    return {name: int(count) for name, count in zip(label_names, counts, strict=True)}


def balanced_class_weights(
    labels: Sequence[int], label_names: Sequence[str]
) -> npt.NDArray[np.float64]:
    """Weight of each class in id order, n / (classes * count): scikit-learn's "balanced".

    Shape [classes].

    Raises:
        UserError: a class has no rows, so that no weight can balance it.
    """
    counts = class_counts(labels, label_names)
    empty = [name for name, count in counts.items() if count == 0]
    if empty:
        raise UserError(
            f"--class_weights balanced: no training row has the label {', '.join(empty)}, so its "
            "weight is not defined. Add rows of it, or give each label a number: "
            "--class_weights '{\"label\": 1, ...}'."
        )
    return np.asarray(len(labels) / (len(counts) * np.array([*counts.values()])), dtype=np.float64)
