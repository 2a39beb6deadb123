"""A few inputs to try a model on: what its run was tested on, else made-up ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from toolkit.sharing.source import Source
from toolkit.sharing.tasks import Kind, example_rows, example_texts

MOST = 8
_CHINESE = ["房间很干净，服务也好。", "差", "她打算六月一日去上海旅行，带了一些美元和一本书。"]
_ENGLISH = [
    "The room was clean and the staff friendly.",
    "Bad",
    "In 1998 he went to Paris by train.",
]


def some_texts(source: Source, kind: Kind) -> list[list[str]]:
    """Texts of different length, each alone or with the second of its pair."""
    rows = example_rows(source, MOST)
    if kind.check == "text-classification" and kind.pairs:
        return [[row["text"], row["pair"]] for row in rows] or [
            [text, text] for text in _made_up(kind)
        ]
    texts = example_texts(source, MOST) or _made_up(kind)
    if kind.check == "question-answering":
        asked = "他什么时候去了上海？" if kind.chinese else "When did he go to Paris?"
        return [[asked, text] for text in [*texts, *_made_up(kind)]]
    return [[kind.prefix + text] for text in texts]


def _made_up(kind: Kind) -> list[str]:
    return _CHINESE if kind.chinese else _ENGLISH


def some_images(source: Source, folder: Path) -> list[str]:
    """Files of images: those the run was tested on that are still there, and two of noise."""
    rows = example_rows(source, MOST)
    found = [str(Path(row["image"]).resolve()) for row in rows if Path(row["image"]).is_file()]
    generator = np.random.default_rng(0)
    for height, width in ((40, 40), (64, 48)):
        file = folder / f"{height}x{width}.png"
        pixels = generator.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(file)
        found.append(str(file))
    return found
