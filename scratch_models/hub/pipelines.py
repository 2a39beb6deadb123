"""transformers' pipelines take our models without a word of protest.

A pipeline compares the name of the class it is given with the names in transformers' own tables and
logs an error for one it does not know, though it then works with it. Our names are not put into
those tables, which belong to everybody in the process; the error alone is left out, where it speaks
of a class of ours that stands for one the pipeline does support.
"""

from __future__ import annotations

import logging
import re
from functools import cache

import transformers

from scratch_models.hub.architecture import HEADS, architectures

_REFUSAL = re.compile(r"The model '(\w+)' is not supported for .*Supported models are (.*)", re.S)


class _KnownModels(logging.Filter):
    """Drops "The model '…' is not supported" where a model of ours is as good as a known one."""

    def filter(self, record: logging.LogRecord) -> bool:
        """False for a record that is not to be logged."""
        refusal = _REFUSAL.match(record.getMessage())
        if refusal is None:
            return True
        head = _heads().get(refusal[1])
        supported = set(re.findall(r"'(\w+)'", refusal[2]))
        return head is None or not _huggingface_names(head) <= supported


@cache
def _heads() -> dict[str, str]:
    """The head of each of our classes, by name."""
    found = architectures().values()
    return {name: head for one in found for head, name in one.classes.items()}


def _huggingface_names(head: str) -> set[str]:
    """All classes transformers itself has for a head."""
    names = getattr(transformers, HEADS[head])._model_mapping._model_mapping.values()
    return {n for name in names for n in (name if isinstance(name, tuple) else (name,))}


def accept_our_models() -> None:
    """Put the filter, once, before the one logger that knows the message."""
    logger = logging.getLogger("transformers.pipelines.base")
    if not any(isinstance(known, _KnownModels) for known in logger.filters):
        logger.addFilter(_KnownModels())
