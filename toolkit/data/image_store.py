"""Images decoded once: one tensor of bytes on the disk, found again by the content of the files."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from toolkit.data.cache import build_once
from toolkit.data.image_decoding import Size, decode, read_size, resize, to_tensor
from toolkit.errors import UserError, first_line
from toolkit.progress import progress_bar

LAYOUT_VERSION = 1  # raise it whenever the stored pixels change, so that old caches are not used
SPAN = 1024  # images decoded between two writes

Content = bytes | Path | None
"""A file as it is, where it is, or nothing."""

UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)


@dataclass(frozen=True)
class PixelStore:
    """All images of a data set at one size.

    `bad` says by row what is wrong with files that are no images; their pixels are zero. `changes`
    counts what was done to the others.
    """

    pixels: Tensor  # uint8 [images, 3, height, width], a view of the file
    bad: dict[int, str]
    changes: dict[str, int]

    @property
    def size(self) -> Size:
        """Height and width."""
        height, width = self.pixels.shape[-2:]
        return height, width


def content_hashes(contents: Sequence[Content]) -> list[str]:
    """SHA-256 of every file; that of nothing where it cannot be read."""
    return [hashlib.sha256(_bytes_of(content) or b"").hexdigest() for content in contents]


def decode_once(
    contents: Sequence[Content], hashes: Sequence[str], size: Size | None
) -> PixelStore:
    """Decode images, or find them decoded in the user's cache.

    Args:
        hashes: of the contents, by which they are found again.
        size: height and width for images that differ in size, or that are larger; images of one
            smaller size keep it. None: they must have one size.

    Raises:
        UserError: they differ in size and none is given, or the cache cannot be written.
    """
    digest = hashlib.sha256(f"{LAYOUT_VERSION} {size}".encode())
    for one in hashes:
        digest.update(bytes.fromhex(one))

    def build(folder: Path) -> None:
        _decode_into(folder, contents, size)

    folder = build_once(f"images-{digest.hexdigest()[:32]}", build)
    notes = json.loads((folder / "notes.json").read_text(encoding="utf-8"))
    # Copy on write: torch asks for memory that may be written, the file is never.
    pixels = torch.from_numpy(np.load(folder / "pixels.npy", mmap_mode="c"))
    return PixelStore(
        pixels, {int(row): why for row, why in notes["bad"].items()}, notes["changes"]
    )


def _decode_into(folder: Path, contents: Sequence[Content], size: Size | None) -> None:
    bad: dict[int, str] = {}
    changes: Counter[str] = Counter()
    stored = _common_size(contents, size, bad)
    shape = (len(contents), 3, *stored)
    pixels = np.lib.format.open_memmap(folder / "pixels.npy", "w+", np.uint8, shape)
    with progress_bar("decoding images", len(contents)) as display:
        for row, (image, noted) in enumerate(_decoded(contents, bad, stored)):
            if image is not None:
                pixels[row] = image.numpy()
            changes.update(noted)
            display.advance()
    pixels.flush()
    notes = {"bad": bad, "changes": changes}
    (folder / "notes.json").write_text(json.dumps(notes), encoding="utf-8")


def _common_size(contents: Sequence[Content], size: Size | None, bad: dict[int, str]) -> Size:
    """The size to store images at; fills in `bad` with files that have none.

    Raises:
        UserError: images differ in size and none is asked for.
    """
    found: Counter[Size] = Counter()
    with progress_bar("looking at images", len(contents)) as display:
        for row, content in enumerate(contents):
            try:
                found[read_size(read_content(content))] += 1
            except UNREADABLE as error:
                bad[row] = problem_of(error)
            display.advance()
    if len(found) == 1:
        (only,) = found
        fits = size is None or (only[0] <= size[0] and only[1] <= size[1])
        return only if fits else size or only
    if size is None and found:
        smallest, largest = min(found), max(found)
        raise UserError(
            f"the images have {len(found)} different sizes, from {smallest[0]}x{smallest[1]} to "
            f"{largest[0]}x{largest[1]} (height x width). Say what to bring them to: --image-size, "
            "such as --image-size 64."
        )
    return size or (1, 1)  # no image at all


def _decoded(
    contents: Sequence[Content], bad: dict[int, str], stored: Size
) -> Iterator[tuple[Tensor | None, list[str]]]:
    """Every image at the stored size and what was done to it; None for those that are bad."""

    def one(row: int) -> tuple[Tensor | None, list[str]]:
        if row in bad:
            return None, []
        try:
            decoded = decode(read_content(contents[row]))
        except UNREADABLE as error:
            bad[row] = problem_of(error)
            return None, []
        image = to_tensor(decoded.pixels)
        resized = ["resized"] if tuple(image.shape[-2:]) != stored else []
        return resize(image, stored), [*decoded.changes, *resized]

    # Pillow lets other threads run while it decodes.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start in range(0, len(contents), SPAN):
            yield from pool.map(one, range(start, min(start + SPAN, len(contents))))


def read_content(content: Content) -> bytes:
    """The bytes of an image file.

    Raises:
        FileNotFoundError, ValueError: there is no such file, or nothing in it.
    """
    found = _bytes_of(content)
    if found is None:
        raise FileNotFoundError("there is no such file" if content is not None else "empty cell")
    if not found:
        raise ValueError("the file is empty")
    return found


def _bytes_of(content: Content) -> bytes | None:
    if not isinstance(content, Path):
        return content
    try:
        return content.read_bytes()
    except OSError:
        return None


def problem_of(error: BaseException) -> str:
    """What is wrong with a file, in a line."""
    if isinstance(error, Image.UnidentifiedImageError):
        return "not an image that can be read"
    return first_line(error)
