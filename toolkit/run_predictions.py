"""What a run's model says about a split: computed with its progress shown, and written down."""

from __future__ import annotations

from typing import Any

import pyarrow
import pyarrow.parquet
from torch import nn

from toolkit.batching import Collate
from toolkit.evaluation import Compute, Outputs, predict
from toolkit.progress import progress_bar
from toolkit.run import Run


def predict_rows(
    run: Run[Any], what: str, model: nn.Module, rows: Any, compute: Compute, collate: Collate
) -> Outputs:
    """`toolkit.evaluation.predict` with the run's processes and batch size.

    Args:
        what: name of the activity in the progress display, such as "evaluating on test".
    """
    with progress_bar(what, len(rows)) as display:
        return predict(
            model,
            rows,
            compute=compute,
            collate=collate,
            accelerator=run.accelerator,
            batch_size=run.config.train.eval_batch_size,
            advance=display.advance,
        )


def save_predictions(run: Run[Any], split: str, table: pyarrow.Table) -> None:
    """Write ``predictions/<split>.parquet`` of the run, one row per example."""
    file = run.directory / "predictions" / f"{split}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(table, file)
