"""What an architecture says about itself, and how the folders that hold them are found.

An architecture is a package in `scratch_models/models/` (or `scratch_models/baselines/`) whose
`__init__.py` names itself in `ARCHITECTURE`. Nothing else has to be told of it: the Auto classes,
`scratch_models.ScratchXModel`, parity and the catalogue look here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

_HOMES = ("scratch_models.models", "scratch_models.baselines")

HEADS = {
    "model": "AutoModel",
    "pretraining": "AutoModelForPreTraining",
    "masked-lm": "AutoModelForMaskedLM",
    "causal-lm": "AutoModelForCausalLM",
    "seq2seq-lm": "AutoModelForSeq2SeqLM",
    "sequence-classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "question-answering": "AutoModelForQuestionAnswering",
    "image-classification": "AutoModelForImageClassification",
}
"""What a model is asked to do, and the Auto class HuggingFace has for it."""


@dataclass(frozen=True)
class Architecture:
    """One architecture: its classes and what they stand for.

    Light on purpose: reading it imports neither torch nor transformers.

    Args:
        model_type: of the config (`config.json`), by which checkpoints say what they are.
        title: as one says it ("BERT").
        paper: authors, year and arXiv number or venue.
        classes: the class of every head; keys are keys of `HEADS`.
        exports: other public names, importable from `scratch_models` too; with the name of their
            module before them where that is another one (`stacks.ScaledEmbeddings`).
        module: where the classes are, relative to the package of the architecture.
        reference: name on the Hub of the checkpoint everybody knows; empty without one.
        reference_config: the fields in which its config differs from the config class's defaults.
    """

    model_type: str
    title: str
    paper: str
    classes: Mapping[str, str]
    exports: tuple[str, ...] = ()
    module: str = "modeling"
    reference: str = ""
    reference_config: Mapping[str, Any] = field(default_factory=dict)
    package: str = ""
    """The package it was found in; filled in by `architectures`."""

    def load(self, head: str) -> Any:
        """The class of a head.

        Raises:
            KeyError: for a head it has not.
        """
        return getattr(self.part(self.module), self.classes[head])

    def part(self, name: str) -> ModuleType:
        """A module of the architecture's package (`modeling`, `parity_grid`)."""
        return importlib.import_module(f"{self.package}.{name}")


@cache
def architectures() -> dict[str, Architecture]:
    """Every architecture by its model type, Transformers first, then baselines."""
    found = {}
    for home in _HOMES:
        for module in pkgutil.iter_modules(importlib.import_module(home).__path__):
            package = f"{home}.{module.name}"
            architecture = getattr(importlib.import_module(package), "ARCHITECTURE", None)
            if architecture is not None:
                # Frozen against accidents; this is the one place that knows the package.
                object.__setattr__(architecture, "package", package)
                found[architecture.model_type] = architecture
    return found


def public_names() -> dict[str, str]:
    """Every public class of the architectures and the module it is in."""
    names = {}
    for architecture in architectures().values():
        for name in (*architecture.classes.values(), *architecture.exports):
            module, _, public = name.rpartition(".")
            names[public] = f"{architecture.package}.{module or architecture.module}"
    return names
