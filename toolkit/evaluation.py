"""One pass over a data set: every example exactly once, whatever the number of processes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object, send_to_device
from torch import Tensor, nn

from toolkit.batching import Collate, Rows, evaluation_batches, row_lengths
from toolkit.console import notify
from toolkit.errors import UserError, first_line
from toolkit.memory_errors import is_out_of_memory
from toolkit.metrics import classification_metrics
from toolkit.objectives import Batch
from toolkit.training.freezing import set_training_mode

Outputs = dict[str, np.ndarray]
Compute = Callable[[nn.Module, Batch], dict[str, Tensor]]
"""Per-example results of a batch, each of shape [batch, ...], such as ``Objective.outputs``."""


class Metric(Protocol):
    """Turns per-example results into numbers, and says which one chooses the best checkpoint."""

    selection: str
    higher_is_better: bool

    def __call__(self, outputs: Outputs) -> dict[str, float]:
        """Named values, among them ``selection``."""


class ClassificationMetric:
    """Accuracy, macro F1 and mean loss; chosen by accuracy.

    Args:
        num_labels: classes of the model; macro F1 averages over all of them, seen or not.
    """

    selection = "accuracy"
    higher_is_better = True

    def __init__(self, num_labels: int) -> None:
        self.num_labels = num_labels

    def __call__(self, outputs: Outputs) -> dict[str, float]:
        """Compute from ``logits`` [n, classes], ``labels`` [n] and ``loss`` [n]."""
        predictions = outputs["logits"].argmax(-1)
        values = classification_metrics(outputs["labels"], predictions, self.num_labels)
        return {**values, "loss": float(outputs["loss"].mean())}


class PretrainingMetric:
    """Masked-token accuracy and loss per masked token, next-sentence accuracy; chosen by loss."""

    selection = "masked_loss"
    higher_is_better = False

    def __call__(self, outputs: Outputs) -> dict[str, float]:
        """Compute from the sums of ``toolkit.objectives.Pretraining.outputs``."""
        masked = max(int(outputs["masked"].sum()), 1)
        return {
            "masked_loss": float(outputs["loss"].sum() / masked),
            "masked_accuracy": float(outputs["correct"].sum() / masked),
            "next_sentence_accuracy": float(outputs["next_correct"].mean()),
        }


def predict(
    model: nn.Module,
    data: Any,
    *,
    compute: Compute,
    collate: Collate,
    accelerator: Accelerator,
    batch_size: int,
    advance: Callable[[int], None] | None = None,
) -> Outputs:
    """Run the model over a data set and return its per-example results in the order of the rows.

    Batches that do not fit into memory are divided: no result depends on that.

    Args:
        data: rows with the columns the collator needs; a ``length`` column sorts them into batches
            of similar length.
        compute: what to keep of every batch; called without gradients, the model in eval mode.
        advance: called with the number of rows done, for a progress display.

    Returns:
        The arrays of ``compute``, [rows, ...], the same on every process.

    Raises:
        UserError: out of memory with a single row, or with several processes, which compute in step
            with each other.
        RuntimeError: a row is missing or was counted twice.
    """
    batches = evaluation_batches(
        len(data),
        batch_size,
        accelerator.process_index,
        accelerator.num_processes,
        row_lengths(data),
    )
    was_training = model.training
    model.eval()
    numbered = Rows(data)

    def outputs_of(rows: np.ndarray) -> dict[str, np.ndarray]:
        # A process without rows runs one of them for nothing: sharded models compute together.
        load = rows if len(rows) else np.zeros(1, dtype=int)
        batch = collate(numbered.__getitems__(load.tolist()))
        outputs = compute(model, send_to_device(batch, accelerator.device))
        return {name: value[: len(rows)].cpu().numpy() for name, value in outputs.items()}

    parts: list[dict[str, np.ndarray]] = []
    with torch.no_grad():
        alone = accelerator.num_processes == 1
        for rows, arrays in _within_memory(batches, outputs_of, alone):
            parts.append({"index": rows, **arrays})
            if advance is not None:
                advance(len(rows))
    if was_training:
        set_training_mode(model)
    if accelerator.num_processes > 1:
        parts = gather_object(parts)
    return _in_row_order(parts, len(data))


def _within_memory(
    batches: Sequence[np.ndarray],
    outputs_of: Callable[[np.ndarray], dict[str, np.ndarray]],
    alone: bool,
) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
    """Rows and results, batch by batch; after one that was too large, in smaller ones."""
    left = deque(batches)
    while left:
        rows = left.popleft()
        try:
            outputs = outputs_of(rows)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            problem = f"evaluation: {len(rows)} rows do not fit into memory ({first_line(error)})"
            if not alone or len(rows) < 2:
                raise UserError(
                    f"{problem}. Start a new run with a smaller --train.eval_batch_size, or with "
                    "shorter inputs (--max_length)."
                ) from error
        else:
            yield rows, outputs
            continue
        most = len(rows) // 2
        notify(f"{problem}; it goes on with at most {most} at a time, which changes no result")
        left = deque(
            part
            for batch in (rows, *left)
            for part in np.array_split(batch, max(1, math.ceil(len(batch) / most)))
        )


def _in_row_order(parts: list[dict[str, np.ndarray]], rows: int) -> Outputs:
    joined: Mapping[str, np.ndarray] = {
        name: np.concatenate([part[name] for part in parts]) for name in parts[0]
    }
    seen = np.bincount(joined["index"], minlength=rows)
    if len(joined["index"]) != rows or not (seen == 1).all():
        raise RuntimeError(
            f"evaluation saw {len(joined['index'])} rows ({int((seen > 1).sum())} of them twice, "
            f"{int((seen == 0).sum())} never), expected each of {rows} exactly once"
        )
    order = np.argsort(joined["index"])
    return {name: values[order] for name, values in joined.items() if name != "index"}
