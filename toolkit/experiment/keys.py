"""Which keys a part of an experiment file may have, and of which kind their values are."""

from __future__ import annotations

import math
from typing import Any

from toolkit.errors import UserError

_TYPES: dict[str, tuple[type, ...]] = {
    "a text": (str,),
    "keys and values": (dict,),
    "a list": (list,),
    "keys and values, or a list of such": (dict, list),
    "true or false": (bool,),
    "a number": (int, float),
}


def check_keys(
    content: dict[str, Any], kinds: dict[str, str], required: tuple[str, ...], where: str
) -> None:
    """Raise a UserError for a key that is unknown or missing, or a value of another kind.

    Args:
        kinds: every key that may be there, and what its value is, in words of `_TYPES`.
        where: file and cell, for the message.
    """
    for key, value in content.items():
        if key not in kinds:
            raise UserError(f"{where}: unknown key '{key}'; known: {', '.join(kinds)}")
        if not _is(value, kinds[key]):
            raise UserError(f"{where}: {key}: expected {kinds[key]}, found {value!r}")
    for key in required:
        if key not in content:
            raise UserError(f"{where}: the key '{key}' is missing")


def check_seeds(seeds: list[Any], where: str) -> None:
    """Raise a UserError where these are not distinct seeds."""
    for seed in seeds:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
            raise UserError(f"{where}: seeds: expected whole numbers from 0 on, found {seed!r}")
        if seeds.count(seed) > 1:
            raise UserError(f"{where}: seeds: {seed} stands there {seeds.count(seed)} times")
    if not seeds:
        raise UserError(f"{where}: seeds: expected at least one")


def _is(value: Any, kind: str) -> bool:
    if kind == "a number":
        return not isinstance(value, bool) and isinstance(value, (int, float)) and (
            math.isfinite(value)
        )  # fmt: skip
    return isinstance(value, _TYPES[kind])
