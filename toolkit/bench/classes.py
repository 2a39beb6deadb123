"""HuggingFace's class and ours of the same name, and whether they learn the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from toolkit.bench.agreement import TOLERANCES, agree
from toolkit.bench.settings import BenchSettings
from toolkit.bench.steps import Batches, plain_descent

HUGGINGFACE, OURS = "transformers", "scratch_models"

Load = Callable[..., Any]
"""A model from a folder, with settings of its config."""


def loaders(name: str) -> dict[str, Load]:
    """Both sides' way to load a checkpoint, with SDPA attention.

    Args:
        name: of HuggingFace's class; ours has `Scratch` before it.
    """
    return {HUGGINGFACE: partial(_huggingface, name), OURS: partial(_ours, name)}


def learn_the_same(
    load: Mapping[str, Load],
    folder: Path,
    batches: Mapping[str, Batches],
    texts: str,
    settings: BenchSettings,
    **config: Any,
) -> dict[str, float | str]:
    """Compare losses before and after a step of gradient descent.

    Args:
        batches: a few, for each side.
        texts: what they are, in words.
        **config: settings of the models, such as no dropout.

    Raises:
        ResultsDiffer: the losses differ.
    """
    losses = {
        name: plain_descent(load[name](folder, **config), batches[name], settings) for name in load
    }
    what = f"losses of {texts}, before and after a step of gradient descent"
    return agree(losses, OURS, what, TOLERANCES[settings.precision])


def _huggingface(name: str, folder: Path, **config: Any) -> Any:
    import transformers

    return getattr(transformers, name).from_pretrained(folder, attn_implementation="sdpa", **config)


def _ours(name: str, folder: Path, **config: Any) -> Any:
    import scratch_models

    own = getattr(scratch_models, f"Scratch{name}")
    return own.from_pretrained(folder, attn_implementation="sdpa", **config)
