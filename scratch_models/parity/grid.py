"""Tiny random models of every architecture, compared over heads, configs and attentions.

An architecture's `parity_grid.py` holds the data: `TINY`, the keyword arguments of a tiny config;
`VARIANTS`, changes to it by name; and, where a head needs some, `HEAD_CHANGES` by head.

Weights are random, and large: of a small error in a model with small weights nothing is left at its
end. A report says that its weights were random; it proves the computation, not a checkpoint.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import torch
from transformers import PreTrainedModel

from scratch_models.hub.architecture import Architecture
from scratch_models.parity.check import COMPARISONS, check_pair
from scratch_models.parity.loading import classes_to_compare, has_attention, load_pair
from scratch_models.parity.report import ParityReport

DEFAULT = "default"
"""The name of `TINY` among the variants."""
_MOST_COMPLETE = ("pretraining", "causal-lm", "seq2seq-lm", "image-classification", "masked-lm")


def check_architecture(
    architecture: Architecture,
    heads: Iterable[str] | None = None,
    variants: Iterable[str] | None = None,
    attn: Iterable[str] = ("sdpa",),
    comparisons: Collection[str] = COMPARISONS,
) -> Iterator[ParityReport]:
    """Compare tiny random models of an architecture, one for every head, variant and attention.

    Args:
        architecture: from `scratch_models.hub.architecture.architectures`.
        heads: keys of its `classes`; None takes all.
        variants: names from `variants_of`; None takes all.
        attn: attention implementations; one is enough for a model without attention.
        comparisons: as in `check_pair`.

    Yields:
        The reports, each as soon as it is made; none for classes that transformers has not.

    Raises:
        ValueError: for a variant there is not.
    """
    for head in compared_heads(architecture) if heads is None else heads:
        _, reference_class = classes_to_compare(architecture.model_type, head)
        implementations = list(attn) if has_attention(reference_class) else ["none"]
        for variant in variants_of(architecture) if variants is None else variants:
            for implementation in implementations:
                yield check_random(architecture, head, variant, implementation, comparisons)


def check_random(
    architecture: Architecture,
    head: str,
    variant: str = DEFAULT,
    attn: str = "sdpa",
    comparisons: Collection[str] = COMPARISONS,
    seed: int = 0,
    **changes: Any,
) -> ParityReport:
    """Compare one tiny random model, read by both sides from a folder that HuggingFace's wrote.

    Args:
        architecture: which.
        head: a key of its `classes`.
        variant: a name from `variants_of`.
        attn: the attention implementation; not looked at for a model without attention.
        comparisons: as in `check_pair`.
        seed: of the weights.
        **changes: further changes to the config.
    """
    with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng():
        write_random_checkpoint(folder, architecture, head, variant, seed, **changes)
        pair = load_pair(folder, head, attn)
        name = f"random weights, {variant}"
        return check_pair(pair, name, comparisons=comparisons, weights="random")


def write_random_checkpoint(
    folder: str | os.PathLike,
    architecture: Architecture,
    head: str,
    variant: str = DEFAULT,
    seed: int = 0,
    **changes: Any,
) -> None:
    """Write a tiny random model as HuggingFace's class does; arguments as `check_random`."""
    torch.manual_seed(seed)
    own_class, reference_class = classes_to_compare(architecture.model_type, head)
    reference = reference_class(
        own_class.config_class(**config_fields(architecture, head, variant, **changes))
    )
    perturb_flat_parameters(reference)
    reference.save_pretrained(folder)


def config_fields(
    architecture: Architecture, head: str, variant: str = DEFAULT, **changes: Any
) -> dict[str, Any]:
    """The keyword arguments of a tiny config; what the head needs goes before the variant.

    Raises:
        ValueError: for a variant there is not.
    """
    known = variants_of(architecture)
    if variant not in known:
        raise ValueError(
            f"no variant {variant!r} of {architecture.title}: there are {', '.join(known)}."
        )
    grid = architecture.part("parity_grid")
    needed = getattr(grid, "HEAD_CHANGES", {}).get(head, {})
    return {**grid.TINY, **known[variant], **needed, **changes}


def variants_of(architecture: Architecture) -> Mapping[str, dict[str, Any]]:
    """Changes to the tiny config by name, beginning with none at all."""
    changes: dict[str, dict[str, Any]] = architecture.part("parity_grid").VARIANTS
    return {DEFAULT: {}} | {name: change for name, change in changes.items() if change}


def compared_heads(architecture: Architecture) -> list[str]:
    """The heads that have a counterpart in transformers."""
    return [h for h in architecture.classes if architecture.load(h).huggingface_class is not None]


def most_complete_head(architecture: Architecture) -> str:
    """The head whose model has most parts: the one to try variants of the config on."""
    heads = compared_heads(architecture)
    return next((head for head in _MOST_COMPLETE if head in heads), heads[0])


def perturb_flat_parameters(model: PreTrainedModel) -> None:
    """Give biases, norms and buffers other values than a fresh model's.

    Fresh biases are 0, norms 1 and statistics those of no batch: forgotten or swapped ones would
    not show.
    """
    kept = model.state_dict()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) * 0.3)
        for name, buffer in model.named_buffers():
            if name not in kept:
                continue  # not in the checkpoint either
            if name.endswith("running_var"):
                buffer.uniform_(0.5, 1.5)
            elif buffer.is_floating_point():
                buffer.add_(torch.randn_like(buffer) * 0.3)
            elif name.endswith("num_batches_tracked"):
                buffer.fill_(7)
