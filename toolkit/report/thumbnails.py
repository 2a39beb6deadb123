"""Small pictures of test images, read once more from where the runs had them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.comparison.compare import Comparison
from toolkit.comparison.saved_run import SavedRun
from toolkit.errors import UserError, first_line

if TYPE_CHECKING:
    from toolkit.data.image_sources import ImageSource

LARGEST_SIDE = 80
"""Pixels of the longer side; larger images are made smaller, so that a report stays small."""

_FOLDERS_ABOVE = 4  # a run lies in results/runs/<recipe>/<run> of the folder it was started in


@dataclass(frozen=True)
class Thumbnails:
    """PNG files by the example's id, and why some or all are not shown (None: all are)."""

    files: dict[str, bytes]
    left_out: str | None


def thumbnails(comparison: Comparison, ids: Sequence[str]) -> Thumbnails:
    """The images of examples, from the data set of the first run that still has them.

    An image is shown only if its file is, byte for byte, the one that the run was tested on: the
    example's id begins with its hash. Nothing is fetched from the Hub.
    """
    reason = "The images are not shown: the runs did not record where they were read."
    for run in comparison.runs:
        dataset = run.config.get("dataset")
        if not isinstance(dataset, str):
            continue
        try:
            source = _read(run, dataset)
        except UserError as error:
            reason = f"The images are not shown: {first_line(error)}"
            continue
        if source is None:
            reason = f"The images are not shown: {dataset} is not on this machine as files."
            continue
        files = {name: png for name in ids if (png := _png(source, name)) is not None}
        missing = len(ids) - len(files)
        if not missing:
            return Thumbnails(files, None)
        which = "The images are" if not files else f"{missing} of {len(ids)} images are"
        reason = f"{which} not shown: {dataset} no longer holds them as they were tested."
        if files:
            return Thumbnails(files, reason)
    return Thumbnails({}, reason)


def _read(run: SavedRun, dataset: str) -> ImageSource | None:
    """The data set, where it is embedded or lies on this machine; else None."""
    from toolkit.data.image_sources import read_image_source  # it imports much

    columns = run.config.get("image_column"), run.config.get("label_column")
    if dataset.startswith("demo:"):
        return read_image_source(dataset, *columns)
    given = Path(dataset).expanduser()
    places = [given]
    if not given.is_absolute() and len(run.folder.resolve().parents) >= _FOLDERS_ABOVE:
        places.append(run.folder.resolve().parents[_FOLDERS_ABOVE - 1] / given)
    found = next((place for place in places if place.exists()), None)
    return None if found is None else read_image_source(str(found), *columns)


def _png(source: ImageSource, example: str) -> bytes | None:
    """The image whose id this is, as a small PNG file; None where it is not there any more."""
    digest, _, number = example.rpartition("-")
    if not digest or not number.isdecimal():
        return None
    row = int(number) - 1
    for table in source.tables.values():
        if not 0 <= row < len(table.contents):
            continue
        content = table.contents[row]
        if isinstance(content, Path):
            content = content.read_bytes() if content.is_file() else None
        if content and hashlib.sha256(content).hexdigest().startswith(digest):
            return _small(content)
    return None


def _small(content: bytes) -> bytes | None:
    """An image file as a PNG file of at most `LARGEST_SIDE` pixels a side."""
    from PIL import Image

    from toolkit.data.image_decoding import decode

    try:
        image = Image.fromarray(decode(content).pixels)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    image.thumbnail((LARGEST_SIDE, LARGEST_SIDE))
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()
