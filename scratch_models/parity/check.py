"""Everything there is to compare, in one call."""

from __future__ import annotations

import os

from transformers import PreTrainedModel

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.parity.forward import compare_forward
from scratch_models.parity.gradients import compare_gradients
from scratch_models.parity.inputs import Batch, example_batches
from scratch_models.parity.loading import ParityPair, compare_loading, load_pair
from scratch_models.parity.report import ParityReport, ParityRow
from scratch_models.parity.saving import compare_saving
from scratch_models.parity.training import compare_training


def check_pair(pair: ParityPair, name: str, device: str = "cpu", seed: int = 0) -> ParityReport:
    """Compare a loaded pair in every respect; trains both models.

    Args:
        pair: from `load_pair`.
        name: of the checkpoint, for the report.
        device: where to compute.
        seed: of the example batches.
    """
    scratch, reference = pair.scratch, pair.reference
    report = ParityReport(
        model=name,
        scratch_class=type(scratch).__name__,
        huggingface_class=type(reference).__name__,
        attn_implementation=scratch.config._attn_implementation,
        parameters=scratch.num_parameters(),
        missing=sorted(pair.info["missing_keys"]),
    )
    report.rows += compare_loading(scratch, reference, pair.info, pair.reference_info)
    report.rows += compare_saving(scratch, reference)
    # Saved in the checkpoint's own precision, computed in single precision.
    scratch, reference = scratch.float().to(device), reference.float().to(device)
    batches = [
        {key: tensor.to(device) for key, tensor in batch.items()}
        for batch in example_batches(scratch.config, pair.head, seed)
    ]
    report.rows += compare_computing(scratch, reference, batches)
    return report


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
    scratch: ScratchPreTrainedModel, reference: PreTrainedModel, batches: list[Batch]
) -> list[ParityRow]:
    """Forward, backward and training of two models with equal weights; trains both.

    Args:
        scratch: ours.
        reference: HuggingFace's.
        batches: keyword arguments of `forward`, with labels unless the models are bodies.
    """
    rows = compare_forward(scratch, reference, batches)
    rows += compare_gradients(scratch, reference, batches)
    rows += compare_training(scratch, reference, batches, "SGD")
    rows += compare_training(scratch, reference, batches, "AdamW")
    return rows
