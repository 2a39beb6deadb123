"""Two models in half precision."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.parity.differences import row_of_pairs
from scratch_models.parity.inputs import Batch
from scratch_models.parity.report import ParityRow

UNITS = 4
"""By how many units in the last place, of the largest output or of 1, outputs may differ."""
_STAGE = "half precision"


def compare_half_precision(
    scratch: ScratchPreTrainedModel, reference: PreTrainedModel, batches: list[Batch]
) -> list[ParityRow]:
    """Outputs in bfloat16 and float16: finite, wholly masked rows too, and equal up to rounding.

    Of two rows of the second batch only: a CPU has no fast kernels for half precision.

    The same kernels in the same order give the same bits. Where HuggingFace's class has another
    order of the same sums (GPT-2's Conv1D) the last bits differ, and more so from layer to layer.
    """
    few = {name: _last_rows(value) for name, value in batches[:2][-1].items()}
    rows = []
    for dtype in (torch.bfloat16, torch.float16):
        name = str(dtype).removeprefix("torch.")
        pairs = _outputs(scratch, reference, few, dtype)
        broken = sum(_number_not_finite(*pair) for pair in pairs)
        rows.append(ParityRow(_STAGE, f"{name}: values not finite", float(broken), 0.0))
        finite = [_where_finite(*pair) for pair in pairs]
        tolerance = UNITS * torch.finfo(dtype).eps
        rows.append(row_of_pairs(_STAGE, f"{name}: outputs", finite, tolerance))
    return rows


def _outputs(
    scratch: PreTrainedModel, reference: PreTrainedModel, batch: Batch, dtype: torch.dtype
) -> list[tuple[Tensor | None, Tensor]]:
    """What copies of the models compute in a precision; the models keep their own."""
    halves = [copy.deepcopy(model).eval().to(dtype) for model in (scratch, reference)]
    cast = {name: _cast(value, dtype) for name, value in batch.items()}
    with torch.no_grad():
        ours, theirs = (half(**cast) for half in halves)
    return [(ours.get(key), value) for key, value in theirs.items() if isinstance(value, Tensor)]


def _last_rows(value: Any) -> Any:
    """The last two; of texts, one is all padding."""
    return value[-2:] if isinstance(value, Tensor) else value


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.to(dtype)
    return value


def _number_not_finite(ours: Tensor | None, theirs: Tensor) -> int:
    """How many values are not finite on our side where HuggingFace's are."""
    if ours is None or ours.shape != theirs.shape:
        return 0  # the other row tells of it
    return int((~torch.isfinite(ours) & torch.isfinite(theirs)).sum())


def _where_finite(ours: Tensor | None, theirs: Tensor) -> tuple[Tensor | None, Tensor]:
    """Both in single precision, without the places where HuggingFace's overflowed."""
    finite = torch.isfinite(theirs)
    if ours is None or ours.shape != theirs.shape:
        return None, theirs[finite].float()
    return ours[finite].float(), theirs[finite].float()
