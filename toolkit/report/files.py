"""A report as files: Markdown, one HTML page, JSON for programs, and the pictures."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from toolkit import plots
from toolkit.disk import write_whole
from toolkit.errors import UserError
from toolkit.report.blocks import Document, DrawnPicture, Figure, figures_of
from toolkit.report.html import render_html
from toolkit.report.json_text import json_text
from toolkit.report.markdown_blocks import render_markdown
from toolkit.report.svg import portable_svg

PICTURES_KEY = "pictures"
_PICTURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\.svg")


def write_document(document: Document, folder: str | Path, data: Mapping[str, Any]) -> Path:
    """Write report.md, report.html, report.json and `<name>.svg` of every figure into a folder.

    `data` is what report.json holds, JSON values without NaN; the names of the pictures are added
    under "pictures". Pictures that the last report.json in the folder names and this report no
    longer has are removed; no other file is. Every figure is drawn once, before anything is
    written, and every file appears whole. Returns the path of report.md.

    Raises UserError when the folder cannot be written, ValueError when `data` is no such JSON.
    """
    folder = Path(folder)
    svgs = _drawn(figures_of(document.blocks))
    pictures = [f"{name}.svg" for name in svgs]
    texts = {f"{name}.svg": svg for name, svg in svgs.items()}
    texts["report.html"] = render_html(document, svgs)
    texts["report.md"] = render_markdown(document)
    texts["report.json"] = _json(data, pictures)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        earlier = _pictures_of_earlier_report(folder / "report.json")
        for name, text in texts.items():
            write_whole(folder / name, text)
        for name in earlier - set(pictures):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"The report cannot be written to {folder}: {error}. Name another folder or make this "
            "one writable."
        ) from error
    return folder / "report.md"


def _drawn(figures: Iterable[Figure]) -> dict[str, str]:
    """The SVG of every figure by its name."""
    svgs = {}
    with tempfile.TemporaryDirectory() as scratch:
        for figure in figures:
            picture = figure.draw()
            if isinstance(picture, DrawnPicture):
                svgs[figure.name] = picture.svg
                continue
            path = plots.save_figure(picture, Path(scratch) / f"{figure.name}.svg")
            svgs[figure.name] = portable_svg(path.read_text(encoding="utf-8"))
    return svgs


def _json(data: Mapping[str, Any], pictures: list[str]) -> str:
    if PICTURES_KEY in data:
        raise ValueError(f"{PICTURES_KEY!r} of report.json is written here, not given")
    return json_text({**data, PICTURES_KEY: pictures})


def _pictures_of_earlier_report(path: Path) -> set[str]:
    """What the report.json of an earlier report names; nothing where there is none to be read."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return set()
    names = document.get(PICTURES_KEY) if isinstance(document, dict) else None
    if not isinstance(names, list):
        return set()
    # Names of this folder alone, whatever somebody wrote into the file.
    return {name for name in names if isinstance(name, str) and _PICTURE.fullmatch(name)}
