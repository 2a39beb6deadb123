"""A model of images looks at one: attention between patches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolkit.attention.reading import Reading
from toolkit.attention.tokens import Tokens
from toolkit.attention.weights import stacked_weights, with_labels
from toolkit.data.image_decoding import decode, resize, to_tensor
from toolkit.data.image_store import UNREADABLE, problem_of
from toolkit.errors import UserError
from toolkit.image_modeling import load_preprocessing
from toolkit.prediction.loading import load_model
from toolkit.prediction.predictor import Options
from toolkit.prediction.source import IMAGE, NO_TASK, Source


@dataclass(frozen=True)
class SeenImage:
    """An image as a model sees it.

    Args:
        pixels: uint8 [height, width, 3], at the model's size.
        rows: of patches.
        columns: of patches.
        first: number of the token of the first patch; those before it belong to no patch.
    """

    pixels: NDArray[np.uint8]
    rows: int
    columns: int
    first: int


def read_image(source: Source, options: Options, path: str) -> Reading:
    """As `toolkit.attention.reading.read`, of an image."""
    pixels = _pixels(path)
    frozen = (Path(source.folder) / "classifier.safetensors").is_file()
    bare = frozen or source.task == NO_TASK
    preprocessing = load_preprocessing(source.folder)
    model = load_model(source, "model" if bare else IMAGE, options)
    patch = getattr(model.config, "patch_size", None)
    if patch is None:
        raise UserError(
            f"{source.name}: {type(model).__name__} has no patches that attend to each other. Give "
            "a Vision Transformer."
        )
    seen = resize(to_tensor(pixels), preprocessing.size)
    weights = stacked_weights(model, {"pixel_values": preprocessing(seen[None])})
    patch_height, patch_width = (patch, patch) if isinstance(patch, int) else patch
    height, width = preprocessing.size
    rows, columns = height // patch_height, width // patch_width
    count = next(iter(weights.values())).shape[-1]
    first = count - rows * columns
    if first < 0:
        raise UserError(
            f"{source.name}: {count} tokens for {rows} x {columns} patches; only models whose "
            "patches all attend to each other can be shown."
        )
    maps = with_labels(type(model).__name__, weights, _labels(rows, columns, first))
    image = SeenImage(seen.permute(1, 2, 0).numpy(), rows, columns, first)
    return Reading(source.name, type(model).__name__, (Path(path).name,), maps, image=image)


def _pixels(path: str) -> NDArray[np.uint8]:
    file = Path(path).expanduser()
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise UserError(f"{path} {what}; this model reads images: give the path of one.")
    try:
        return decode(file.read_bytes()).pixels
    except UNREADABLE as error:
        raise UserError(f"{path} is no image that can be read: {problem_of(error)}.") from error


def _labels(rows: int, columns: int, first: int) -> Tokens:
    """[CLS], then patches as (row, column) from (1, 1) on."""
    names = ["[CLS]", *(f"[extra {number}]" for number in range(1, first))][:first]
    patches = [
        f"({row}, {column})" for row in range(1, rows + 1) for column in range(1, columns + 1)
    ]
    return Tokens((*names, *patches), (True,) * first + (False,) * len(patches))
