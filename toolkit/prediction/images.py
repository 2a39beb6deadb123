"""Labels of images, each brought to the model's size as in training."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from toolkit.data.image_collate import Preprocessing
from toolkit.data.image_decoding import decode, resize, to_tensor
from toolkit.data.image_store import UNREADABLE, problem_of, read_content
from toolkit.image_modeling import load_preprocessing
from toolkit.prediction.batches import Advance
from toolkit.prediction.classification import (
    LABEL_NAMES,
    Compute,
    label_answers,
    linear_probabilities,
    names_of_labels,
    probabilities_of,
)
from toolkit.prediction.loading import load_model
from toolkit.prediction.predictor import NOTE, Answer, BadRowsError, Options
from toolkit.prediction.source import IMAGE, Source

NO_IMAGE = "no image"


class ImageClassifier:
    """Labels images given as the bytes of a file, its path, or None (an empty cell).

    Args:
        compute: `probabilities` [batch, classes] of a batch.
        labels: names in id order.
        skip_bad: answer files that are no images with None instead of raising an error.
    """

    task, kind, names = IMAGE, "image", LABEL_NAMES

    def __init__(
        self,
        model: nn.Module,
        preprocessing: Preprocessing,
        compute: Compute,
        labels: Sequence[str],
        batch_size: int,
        skip_bad: bool = False,
    ) -> None:
        self.model, self.preprocessing, self.compute = model, preprocessing, compute
        self.labels, self.batch_size, self.skip_bad = list(labels), batch_size, skip_bad

    def __call__(self, rows: Sequence[Any], advance: Advance) -> list[Answer]:
        """As `toolkit.prediction.classification.TextClassifier`; None where there is no image.

        Raises:
            BadRowsError: files that are no images, unless they are to be skipped; names them.
        """
        import torch

        device = next(self.model.parameters()).device
        answers: list[Answer] = []
        with ThreadPoolExecutor(os.cpu_count()) as pool, torch.inference_mode():
            for start in range(0, len(rows), self.batch_size):
                read = list(pool.map(self._read, rows[start : start + self.batch_size]))
                images = [image for image in read if isinstance(image, Tensor)]
                if not self.skip_bad:
                    _refuse_bad(rows, read, start)
                made: list[Answer] = []
                if images:
                    pixels = self.preprocessing(torch.stack(images)).to(device)
                    found = self.compute(self.model, {"pixel_values": pixels})
                    arrays = {name: value.cpu().numpy() for name, value in found.items()}
                    made = label_answers(arrays, self.labels)
                remaining = iter(made)
                for image in read:
                    is_read = isinstance(image, Tensor)
                    answers.append(next(remaining) if is_read else self._nothing(str(image)))
                advance(len(read))
        return answers

    def _read(self, row: bytes | Path | None) -> Tensor | str:
        """The image at the model's size, or why there is none."""
        if row is None:
            return NO_IMAGE
        try:
            return resize(to_tensor(decode(read_content(row)).pixels), self.preprocessing.size)
        except UNREADABLE as error:
            return problem_of(error)

    def _nothing(self, problem: str) -> Answer:
        probabilities = dict.fromkeys(self.labels)
        return {
            "prediction": None, "probability": None, "probabilities": probabilities,
            NOTE: problem,
        }  # fmt: skip


def open_image_classifier(source: Source, options: Options) -> ImageClassifier:
    """The classifier of a run or checkpoint.

    Raises:
        UserError: whatever is wrong with its files.
    """
    folder = Path(source.folder)
    preprocessing = load_preprocessing(source.folder)
    frozen = (folder / "classifier.safetensors").is_file() and source.is_run
    model = load_model(source, "model" if frozen else "image-classification", options)
    if frozen:
        from toolkit.frozen import image_features

        compute = linear_probabilities(folder, image_features, model)
        labels = source.label_names or []
    else:
        compute, labels = probabilities_of(model.config), names_of_labels(model.config)
    return ImageClassifier(
        model, preprocessing, compute, labels, options.batch_size, options.skip_damaged
    )


def _refuse_bad(rows: Sequence[Any], read: Sequence[Tensor | str], start: int) -> None:
    """Refuse problems among what was `read` of the rows from `start` on."""
    bad = [
        (row, str(rows[row]) if isinstance(rows[row], Path) else None, problem)
        for row, problem in enumerate(read, start)
        if isinstance(problem, str) and problem != NO_IMAGE
    ]
    if bad:
        raise BadRowsError(
            "of the images cannot be read",
            bad,
            "Mend or remove them, or leave them without a prediction: --skip-damaged.",
        )
