"""Everything there is to compare, in one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Literal

from torch import Tensor
from transformers import PreTrainedModel

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.parity.forward import compare_forward
from scratch_models.parity.generation import compare_generation
from scratch_models.parity.gradients import compare_gradients
from scratch_models.parity.inputs import Batch, example_batches
from scratch_models.parity.loading import ParityPair, compare_loading, has_attention, load_pair
from scratch_models.parity.packed import compare_packing
from scratch_models.parity.precision import compare_half_precision
from scratch_models.parity.report import ParityReport, ParityRow
from scratch_models.parity.saving import compare_saving
from scratch_models.parity.training import compare_training

_Compare = Callable[[ScratchPreTrainedModel, PreTrainedModel, list[Batch]], list[ParityRow]]

_COMPUTING: dict[str, _Compare] = {
    "forward": compare_forward,
    "gradients": compare_gradients,
    "packing": compare_packing,
    "half precision": compare_half_precision,
    "generation": lambda scratch, reference, batches: compare_generation(scratch, reference),
    # Last, as they change both models.
    "SGD": partial(compare_training, optimizer="SGD"),
    "AdamW": partial(compare_training, optimizer="AdamW"),
}
COMPARISONS = ("loading", "saving", *_COMPUTING)
"""What `check_pair` can compare, in its order."""


def check_pair(
    pair: ParityPair,
    name: str,
    device: str = "cpu",
    seed: int = 0,
    comparisons: Collection[str] = COMPARISONS,
    weights: Literal["checkpoint", "random"] = "checkpoint",
) -> ParityReport:
    """Compare a loaded pair in every respect; trains both models.

    Args:
        pair: from `load_pair`.
        name: of the checkpoint, for the report.
        device: where to compute.
        seed: of the example batches.
        comparisons: those of `COMPARISONS` that are made. Loading is always compared: it makes
            weights equal that the checkpoint does not hold.
        weights: what the report calls them.

    Raises:
        ValueError: for a comparison there is not.
    """
    if unknown := set(comparisons) - set(COMPARISONS):
        raise ValueError(
            f"no comparison {', '.join(sorted(unknown))}: there are {', '.join(COMPARISONS)}."
        )
    scratch, reference = pair.scratch, pair.reference
    attention = scratch.config._attn_implementation if has_attention(type(reference)) else "none"
    report = ParityReport(
        model=name,
        scratch_class=type(scratch).__name__,
        huggingface_class=type(reference).__name__,
        attn_implementation=attention,
        parameters=scratch.num_parameters(),
        weights=weights,
        missing=sorted(pair.info["missing_keys"]),
    )
    report.rows += compare_loading(scratch, reference, pair.info, pair.reference_info)
    if "saving" in comparisons:
        report.rows += compare_saving(scratch, reference)
    # Saved in the checkpoint's own precision, computed in single precision.
    scratch, reference = scratch.float().to(device), reference.float().to(device)
    batches = [
        {key: _on_device(value, device) for key, value in batch.items()}
        for batch in example_batches(scratch.config, pair.head, seed)
    ]
    report.rows += compare_computing(scratch, reference, batches, comparisons)
    return report


def _on_device(value: Any, device: str) -> Any:
    return value.to(device) if isinstance(value, Tensor) else value


def check_checkpoint(
    name: str | os.PathLike,
    head: str | None = None,
    attn_implementation: str = "sdpa",
    device: str = "cpu",
    seed: int = 0,
) -> ParityReport:
    """`load_pair` and `check_pair` in one."""
    return check_pair(load_pair(name, head, attn_implementation), str(name), device, seed)


def compare_computing(
    scratch: ScratchPreTrainedModel,
    reference: PreTrainedModel,
    batches: list[Batch],
    comparisons: Collection[str] = COMPARISONS,
) -> list[ParityRow]:
    """Forward, backward, half precision, generation and training of two models of equal weights.

    Args:
        scratch: ours; trained in the end.
        reference: HuggingFace's; likewise.
        batches: keyword arguments of `forward`, with labels unless the models are bodies.
        comparisons: those of `COMPARISONS` that are made, of those this function knows.
    """
    rows = []
    scratch.set_packing("off")  # padding and the random numbers of dropout are compared, too
    for name, compare in _COMPUTING.items():
        if name in comparisons:
            rows += compare(scratch, reference, batches)
    return rows
