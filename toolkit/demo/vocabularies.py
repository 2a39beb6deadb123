"""`demo:wordpiece` and `demo:byte-bpe`: two vocabularies of one size, learnt from the same texts.

The texts are the Chinese reviews of `demo:reviews` and, for English, Python's own language
reference (`pydoc_data.topics`, a part of Python). Each has at most 8,000 tokens. They are small and
show how the two ways of cutting differ; no model was trained with them.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from toolkit.console import notify
from toolkit.data.cache import build_once, cache_root
from toolkit.demo.reviews import read_reviews
from toolkit.errors import UserError

WORDPIECE, BYTE_BPE = "demo:wordpiece", "demo:byte-bpe"
NAMES = (WORDPIECE, BYTE_BPE)
SIZE = 8000
LAYOUT_VERSION = 1  # raise it whenever what is learnt changes
LEARNT_FROM = (
    "learnt from 17,363 Chinese reviews (demo:reviews) and Python's English language reference"
)


def vocabulary_folder(name: str) -> Path:
    """The folder of one of `NAMES`, learnt in the user's cache on first use (some seconds).

    Raises:
        UserError: the reviews are not installed, or the cache cannot be written.
    """
    texts = learning_texts()
    # Other versions of Python and of the reviews have other texts.
    content = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
    folder = f"{name.partition(':')[2]}-{SIZE}-{content}-v{LAYOUT_VERSION}"
    if not (cache_root() / folder).is_dir():
        notify(f"{name}: learning its {SIZE:,} tokens once (some seconds) …")
    return build_once(folder, partial(write_vocabulary, name, texts))


def learning_texts() -> list[str]:
    """The reviews, then the paragraphs of Python's language reference.

    Raises:
        UserError: the reviews are not installed, or this Python comes without its reference.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise UserError(
            f"{' and '.join(NAMES)} are learnt from Python's language reference "
            f"(pydoc_data.topics), which this Python {platform.python_version()} was installed "
            "without. Name another tokenizer with --against."
        ) from error
    reviews, _, _ = read_reviews()
    return [*reviews, *(part for text in topics.values() for part in text.split("\n\n"))]


def write_vocabulary(name: str, texts: Sequence[str], folder: Path, size: int = SIZE) -> None:
    """Learn the vocabulary `name` from texts and save its tokenizer in a folder."""
    learn: dict[str, Callable[[], Any]] = {
        WORDPIECE: partial(_wordpiece, texts, size),
        BYTE_BPE: partial(_byte_bpe, texts, size),
    }
    learn[name]().save_pretrained(folder)


def _wordpiece(texts: Sequence[str], size: int) -> Any:
    from toolkit.data.tokenizer_training import train_wordpiece

    return train_wordpiece(texts, size)


def _byte_bpe(texts: Sequence[str], size: int) -> Any:
    from toolkit.data.byte_bpe import train_byte_bpe

    return train_byte_bpe(texts, size)
