"""Labelled images from anywhere, not yet decoded: embedded, folders of classes, tables, the Hub."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from toolkit.console import notify
from toolkit.data.columns import choose_column
from toolkit.data.columns import label_column as find_label_column
from toolkit.data.files import Table, data_suffix
from toolkit.data.labels import label_name
from toolkit.data.sources import SPLIT_NAMES, read_source
from toolkit.demo import digits
from toolkit.errors import UserError

IMAGE_SUFFIXES = (
    ".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm",
)  # fmt: skip
IMAGE_NAMES = ("image", "img", "images", "picture", "photo", "pixels", "file_name", "image_path",
               "filename", "file", "path", "图片", "图像", "照片", "文件")  # fmt: skip
"""Columns of images or of their paths."""

_JUNK_FOLDERS = ("__macosx", "@eadir")
_SHOWN = 5
_JUNK = ("thumbs.db", "desktop.ini")  # what systems leave in folders of pictures


@dataclass(frozen=True)
class ImageTable:
    """The images of one split: file contents, or paths of files, or None where there is nothing."""

    contents: list[bytes | Path | None]
    labels: list[str]  # "" where there is none
    places: list[str]  # where each stands, for messages
    columns: tuple[str, str]
    origin: str  # what messages call all of them together
    class_names: list[str] | None = None  # where the source itself names its classes


@dataclass(frozen=True)
class ImageSource:
    """Tables by split name; "train" is always there."""

    tables: dict[str, ImageTable]
    held_out_sizes: dict[str, int]  # of splits that are fixed, not given


def read_image_source(
    dataset: str, image_column: str | None = None, label_column: str | None = None
) -> ImageSource:
    """Find the images of `dataset` and their labels.

    Raises:
        UserError: nothing of that name, no images or no labels in it.
    """
    if dataset.startswith("demo:"):
        return _read_demo(dataset)
    path = Path(dataset).expanduser()
    if path.is_dir() and not _holds_tables(path):
        return ImageSource(_read_folder(path), {})
    source = read_source(dataset)
    base = (path if path.is_dir() else path.parent) if path.exists() else None
    tables = {
        name: _read_table(table, base, image_column, label_column)
        for name, table in source.tables.items()
    }
    return ImageSource(tables, {})


def _read_demo(name: str) -> ImageSource:
    if name != digits.NAME:
        raise UserError(f"unknown embedded image data set {name!r}; there is {digits.NAME}.")
    images, labels = digits.read_digits()
    contents: list[bytes | Path | None] = []
    for image in images:
        file = io.BytesIO()
        Image.fromarray(image).save(file, "BMP")  # uncompressed: the same bytes everywhere
        contents.append(file.getvalue())
    places = [f"{name}, image {number}" for number in range(1, len(images) + 1)]
    table = ImageTable(contents, labels, places, ("image", "label"), name, digits.LABEL_NAMES)
    return ImageSource({"train": table}, digits.HELD_OUT_SIZES)


def _holds_tables(folder: Path) -> bool:
    return any(path.is_file() and data_suffix(path) is not None for path in _visible(folder))


def _read_folder(folder: Path) -> dict[str, ImageTable]:
    """`folder/<class>/...` or `folder/<split>/<class>/...`.

    Raises:
        UserError: two folders of one split, no train among them, or class folders beside them.
    """
    splits: dict[str, Path] = {}
    for path in _visible(folder):
        name = SPLIT_NAMES.get(path.name.lower())
        if not path.is_dir() or name is None:
            continue
        if name in splits:
            raise UserError(f"{splits[name]} and {path} are both {name} images; keep one of them.")
        splits[name] = path
    beside = [
        path
        for path in _visible(folder)
        if path.is_dir() and path not in splits.values() and any(images_below(path))
    ]
    if "train" in splits and not beside:
        return {name: _read_classes(path, name) for name, path in splits.items()}
    # A class may be called train, too: its folder has no class folders in it.
    holding_classes = [path.name for path in splits.values() if _holds_classes(path)]
    if not holding_classes:
        for path in splits.values():
            notify(
                f"warning: {path} holds no class folders: it is read as a class, not as a split."
            )
        return {"train": _read_classes(folder, "train")}
    found = f"but also images in {', '.join(path.name for path in beside[:5])}"
    raise UserError(
        f"{folder} holds {' and '.join(holding_classes)} with class folders in "
        f"{'it' if len(holding_classes) == 1 else 'them'}, {found if beside else 'but no train'}. "
        "Expected train, validation and test, or class folders alone."
    )


def _read_classes(folder: Path, split: str) -> ImageTable:
    paths: list[Path] = []
    labels: list[str] = []
    ignored: list[Path] = []
    empty: list[Path] = []
    classes = [p for p in _visible(folder) if p.is_dir() and p.name.lower() not in _JUNK_FOLDERS]
    for class_folder in classes:
        files = [path for path in sorted(class_folder.rglob("*")) if is_visible(path, folder)]
        images = [path for path in files if _is_image(path)]
        ignored += [path for path in files if not _is_image(path)]
        if not images:
            empty.append(class_folder)
        paths += images
        labels += [label_name(class_folder.name) or class_folder.name] * len(images)
    if not paths:
        raise UserError(
            f"{folder} holds no images in class folders. Expected {folder.name}/<class>/<image> "
            f"(or {folder.name}/train/<class>/<image> and the same below test), images ending in "
            f"{', '.join(IMAGE_SUFFIXES)}."
        )
    if empty:
        _say_empty(empty, split)
    if ignored:
        notify(f"{folder}: {len(ignored)} files are no images: ignored (the first: {ignored[0]}).")
    if outside := _images_in(folder):
        notify(
            f"warning: {len(outside)} images of {folder} are in no class folder: left out (the "
            f"first: {outside[0]})."
        )
    places = [str(path) for path in paths]
    origin = f"{folder} (one folder per class)"
    return ImageTable([*paths], labels, places, ("file", "folder"), origin)


def _say_empty(folders: list[Path], split: str) -> None:
    """Classes without an image.

    Raises:
        UserError: they are to be learned.
    """
    names = ", ".join(map(str, folders[:_SHOWN]))
    if split == "train":
        raise UserError(
            f"no image in {names}: nothing can be learned of such a class. Put its images there, "
            "or remove the folder."
        )
    notify(f"warning: no image in {names}.")


def _images_in(folder: Path) -> list[Path]:
    """Images right in a folder, not those in folders below."""
    return [path for path in _visible(folder) if path.is_file() and _is_image(path)]


def _holds_classes(folder: Path) -> bool:
    return any(path.is_dir() and any(images_below(path)) for path in _visible(folder))


def images_below(folder: Path) -> Iterator[Path]:
    """Images in a folder and in all folders below, by their names."""
    return (path for path in folder.rglob("*") if _is_image(path) and is_visible(path, folder))


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGE_SUFFIXES


def is_visible(path: Path, folder: Path) -> bool:
    """True for a file below a folder that is neither hidden nor left there by a system.

    A link that leads nowhere counts: what should be there is missing.
    """
    parts = path.relative_to(folder).parts
    hidden = path.name.lower() in _JUNK or any(
        part.startswith(".") or part.lower() in _JUNK_FOLDERS for part in parts
    )
    return (path.is_file() or path.is_symlink()) and not path.is_dir() and not hidden


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _read_table(
    table: Table, base: Path | None, image_column: str | None, label_column: str | None
) -> ImageTable:
    columns = list(table.columns)
    image_name = image_column_name(columns, image_column, table.source)
    label_name_ = find_label_column(columns, label_column, table.source)
    contents: list[bytes | Path | None] = []
    labels, places = [], []
    cells = zip(table.columns[image_name], table.columns[label_name_], strict=True)
    for row, (cell, label) in enumerate(cells):
        place = table.place(row)
        content, name = image_content(cell, base, place)
        try:
            labels.append(label_name(label) or "")
        except ValueError as error:
            raise UserError(f"{place}: {label_name_} is {error}.") from error
        contents.append(content)
        places.append(f"{place} ({name})" if name else place)
    class_names = table.class_names.get(label_name_)
    origin = f"column {label_name_!r} of {table.source}"
    return ImageTable(contents, labels, places, (image_name, label_name_), origin, class_names)


def image_content(cell: Any, base: Path | None, place: str) -> tuple[bytes | Path | None, str]:
    """The image of a cell, and the name of its file where it says one.

    Args:
        base: folder that paths start from.
        place: of the cell, for messages.

    Raises:
        UserError: the cell holds something else.
    """
    if isinstance(cell, dict) and {"bytes", "path"} & cell.keys():  # as `datasets` stores images
        name = cell.get("path") or ""
        if cell.get("bytes") is not None:
            return cell["bytes"], name
        cell = name or None
    if cell is None or isinstance(cell, bytes):
        return cell, ""
    if isinstance(cell, str):
        path = Path(cell).expanduser()
        return (base / path if base is not None else path), cell
    raise UserError(
        f"{place}: found {str(cell)[:40]!r}, expected an image (the bytes of its file, or a path)."
    )


def image_column_name(columns: Sequence[str], asked: str | None, source: str) -> str:
    """The column of images or their paths: the one asked for, else the first common name.

    Raises:
        UserError: no such column; lists the columns that exist.
    """
    return choose_column(
        columns, asked, IMAGE_NAMES, source, "images or their paths", "Name it with --image_column."
    )
