"""Benchmarks: ours and HuggingFace's in one process, in turn, after their results were compared.

A benchmark is a module of this package with a function `cases(settings)` that gives the
`toolkit.bench.case.Case`s it measures. Results are compared first: `ResultsDiffer` is raised rather
than two programs timed that do not do the same.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from toolkit.bench.settings import BenchSettings

if TYPE_CHECKING:
    from toolkit.bench.case import Case

__all__ = ["BENCHMARKS", "BenchSettings", "ResultsDiffer", "cases_of"]

# Name and one line of help; they stand here so that `--help` imports no benchmark.
BENCHMARKS = {
    "bert-predict": "classify texts of very different lengths with BERT",
    "bert-train": "training steps of the same, with dropout and AdamW",
    "gpt2-train": "training steps of GPT-2 on blocks, and on documents of different lengths",
    "gpt2-generate": "write with GPT-2, one text and eight at a time",
    "vit-predict": "classify images with ViT-B/16",
    "vit-train": "training steps of a small ViT for CIFAR-10",
    "packed-attention": "attention alone over texts of different lengths, every way there is",
    "engine": "the training loop itself, against a bare loop and transformers' Trainer",
    "startup": "from the start of the process to the first step of training",
    "predict": "label Chinese reviews: toolkit predict against transformers' pipeline",
}

FLOAT32_ONLY = ("engine", "startup", "predict")
"""Benchmarks that have no other precision."""


class ResultsDiffer(Exception):  # noqa: N818  (it is a finding)
    """The contenders do not compute the same: there is nothing to compare in seconds."""


def cases_of(name: str, settings: BenchSettings) -> list[Case]:
    """The cases of a benchmark, in a fixed order."""
    module = importlib.import_module(f"toolkit.bench.{name.replace('-', '_')}")
    cases: list[Case] = module.cases(settings)
    return cases
