"""The folder of a report: what was found before, and what is written now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from toolkit.claims.record import Measured
from toolkit.claims.report import again, as_document
from toolkit.errors import UserError
from toolkit.json_values import read_object_if_there, without_nan
from toolkit.report.blocks import DrawnPicture
from toolkit.report.files import write_document

SCHEMA_VERSION = 1
_KIND = "claims"


def read_measured(folder: Path) -> dict[int, Measured]:
    """Claims of the report in a folder by number; none where there is no report.

    Raises:
        UserError: report.json is another report's, or damaged, or a picture of it is gone.
    """
    file = folder / "report.json"
    content = read_object_if_there(file)
    if not content:
        return {}
    if content.get("report") != _KIND or content.get("schema_version") != SCHEMA_VERSION:
        raise UserError(
            f"{file} was not written by toolkit claims, or by another version of it: it would be "
            "overwritten. Name another folder with --output."
        )
    try:
        found = [
            Measured.from_dict(one, lambda name: _picture(folder, name))
            for one in content["claims"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{file} is damaged ({type(error).__name__}: {error}). Remove it and measure again, or "
            "name another folder with --output."
        ) from error
    for name in content.get("pictures", []):
        _picture(folder, Path(name).stem)
    return {one.number: one for one in found}


def refuse_mixing(kept: Mapping[int, Measured], quick: bool, folder: Path) -> None:
    """Quick findings and real ones do not stand in one report.

    Raises:
        UserError: the folder has findings of the other kind.
    """
    if others := [number for number, one in kept.items() if one.quick is not quick]:
        numbers = ", ".join(map(str, others))
        were, now = ("quick", "not quick") if not quick else ("not quick", "quick")
        raise UserError(
            f"{folder} has findings that were {were} (claim {numbers}) and these would be {now}: "
            "they do not go into one report. Name another folder with --output."
        )


def write_measured(measured: Mapping[int, Measured], folder: Path) -> Path:
    """Write report.html, report.md, report.json and the pictures; returns report.html.

    Raises:
        UserError: the folder cannot be written.
    """
    ordered = [measured[number] for number in sorted(measured)]
    data = {
        "schema_version": SCHEMA_VERSION,
        "report": _KIND,
        "command": again(ordered),
        "claims": without_nan([one.to_dict() for one in ordered]),
    }
    markdown = write_document(as_document(ordered), folder, data)
    return markdown.with_name("report.html")


def _picture(folder: Path, name: str) -> DrawnPicture:
    file = folder / f"{name}.svg"
    try:
        return DrawnPicture(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{file}, a picture of an earlier finding, cannot be read. Remove "
            f"{folder / 'report.json'} and measure again, or name another folder with --output."
        ) from error
