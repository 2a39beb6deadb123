"""Blocks of a report as JSON values and back, so that a later report can show them again."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from toolkit.report.blocks import (
    Block,
    Bullets,
    Cell,
    Code,
    Details,
    DrawnPicture,
    Figure,
    Link,
    Paragraph,
    Quote,
    Section,
    Table,
    Thumbnail,
)

_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        Bullets, Cell, Code, Details, Figure, Link, Paragraph, Quote, Section, Table, Thumbnail,
    )
}  # fmt: skip
_KIND = "block"


def to_values(blocks: Sequence[Block]) -> list[Any]:
    """Plain JSON values; of a figure its name and texts: its picture has a file of its own."""
    return [_to_value(block) for block in blocks]


def from_values(values: Sequence[Any], picture: Callable[[str], DrawnPicture]) -> list[Block]:
    """What `to_values` was given.

    Args:
        picture: the picture of a figure by its name, called when the report is written.

    Raises:
        ValueError: these are no values of blocks.
    """
    try:
        return [_from_value(value, picture) for value in values]
    except (KeyError, TypeError) as error:
        raise ValueError(f"no blocks of a report: {error}") from error


def _to_value(part: Any) -> Any:
    if part is None or isinstance(part, bool | int | float | str):
        return part
    if isinstance(part, bytes):
        return b64encode(part).decode("ascii")
    if type(part).__name__ in _KINDS:
        kept = [field.name for field in fields(part) if field.name != "draw"]
        values = {name: _to_value(getattr(part, name)) for name in kept}
        return {_KIND: type(part).__name__, **values}
    return [_to_value(one) for one in part]


def _from_value(value: Any, picture: Callable[[str], DrawnPicture]) -> Any:
    if isinstance(value, Mapping):
        kind = _KINDS[value[_KIND]]
        given = {key: _from_value(part, picture) for key, part in value.items() if key != _KIND}
        if kind is Figure:
            given["draw"] = lambda name=given["name"]: picture(name)
        if kind is Thumbnail:
            given["png"] = b64decode(given["png"])
        return kind(**given)
    if isinstance(value, list):
        return tuple(_from_value(part, picture) for part in value)
    return value
