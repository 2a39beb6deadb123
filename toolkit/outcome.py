"""The end of a run: describe and save the model; for classification, test once, write it down."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow
import pyarrow.parquet
from rich.table import Table

from toolkit.batching import Collate
from toolkit.classification_readme import classification_readme
from toolkit.console import console
from toolkit.cost import describe_cost
from toolkit.environment import peak_memory_bytes
from toolkit.evaluation import Outputs
from toolkit.metrics import describe_metrics
from toolkit.modeling import count_parameters
from toolkit.objectives import Objective
from toolkit.run import METRICS, Run, describe_run
from toolkit.run_predictions import predict_rows
from toolkit.training.engine import FitResult
from toolkit.training.sharding import gather_whole, plain_class

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPLITS = ("validation", "test")


class LabelledSplits(Protocol):
    """Examples with labels: texts or images. Rows have the columns ``label`` and ``id``."""

    @property
    def train(self) -> Any:
        """Rows to train on."""

    @property
    def validation(self) -> Any:
        """Rows to choose by."""

    @property
    def test(self) -> Any:
        """Rows to be tested on once."""

    @property
    def label_names(self) -> list[str]:
        """In id order."""

    @property
    def summary(self) -> dict[str, Any]:
        """What data.json records; ``source`` and ``sha256`` among it."""


@dataclass(frozen=True)
class Scores:
    """What a classifier said about a split, in the order of its rows.

    Args:
        probabilities: [rows, classes], float64, each row sums to 1.
    """

    probabilities: np.ndarray

    @classmethod
    def from_logits(cls, logits: np.ndarray) -> Scores:
        """Softmax in float64, [rows, classes]."""
        shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
        exponentials = np.exp(shifted)
        return cls(exponentials / exponentials.sum(-1, keepdims=True))

    @property
    def predictions(self) -> np.ndarray:
        """The most probable class of every row [rows]."""
        return self.probabilities.argmax(-1)


@dataclass(frozen=True)
class Outcome:
    """A trained classifier as reports see it, whatever it is made of."""

    title: str
    model: dict[str, Any]
    training: dict[str, Any]
    scores: dict[str, Scores]  # by split


def score_splits(
    run: Run[Any],
    result: FitResult,
    data: LabelledSplits,
    objective: Objective,
    collate: Collate,
) -> dict[str, Scores]:
    """Run the best model over validation (unless training just did) and test, each row once."""
    outputs = {
        split: split_outputs(run, result, split, getattr(data, split), objective, collate)
        for split in SPLITS
    }
    return {split: Scores.from_logits(found["logits"]) for split, found in outputs.items()}


def split_outputs(
    run: Run[Any],
    result: FitResult,
    split: str,
    rows: Any,
    objective: Objective,
    collate: Collate,
) -> Outputs:
    """The best model's results on a split: those of validation where training has just seen them.

    Args:
        split: ``validation`` or ``test``.
        rows: of that split, as the collator takes them.
    """
    if split == "validation" and result.validation is not None:
        return result.validation
    return predict_rows(
        run, f"evaluating on {split}", result.model, rows, objective.outputs, collate
    )


def describe_model(model: Any, name: str, implementation: str, method: str) -> dict[str, Any]:
    """The ``model`` section of a summary; under an adapter the architecture is the base model's."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return {
        "name": name,
        "implementation": implementation,
        "architecture": plain_class(base).__name__,
        "method": method,
        **count_parameters(model),
    }


def describe_training(run: Run[Any], result: FitResult) -> dict[str, Any]:
    """The ``training`` section of a summary.

    Seconds and joules count the training steps and the preparation of their batches, nothing else.
    """
    state = result.state
    peak = peak_memory_bytes()  # before what `describe_cost` measures, which needs memory too
    return {
        "seconds": round(state.seconds, 3),
        "steps": state.step,
        "epochs": state.epoch + 1 if state.step else 0,
        "examples_per_second": state.examples / state.seconds if state.step else None,
        "tokens_per_second": state.tokens / state.seconds if state.tokens else None,
        "best_step": state.best_step,
        "stopped_early": state.stopped_early,
        **({"skipped_steps": state.skipped} if state.skipped else {}),
        "selection": result.selection,
        "peak_memory_bytes": peak,
        **describe_cost(run, state),
    }


def save_model(run: Run[Any], model: Any, tokenizer: Any, folder: str = "model") -> None:
    """Save weights, config and tokenizer as one HuggingFace folder in the run directory.

    Collective over all processes: weights that are divided among them are gathered.
    """
    whole = gather_whole(run.accelerator, model)
    if whole is not None:
        whole.save_pretrained(run.directory / folder)
        tokenizer.save_pretrained(run.directory / folder)


def finish_classification(
    run: Run[Any], data: LabelledSplits, outcome: Outcome, task: str = "text-classification"
) -> dict[str, Any]:
    """Write predictions and summary, print the result, and complete the run.

    The summary is written last: a run that has one is complete.

    Args:
        task: text-classification or image-classification.

    Returns:
        The summary (schema version 1).
    """
    if run.accelerator.is_main_process:
        for split in SPLITS:
            write_predictions(
                run.directory / "predictions" / f"{split}.parquet",
                getattr(data, split),
                outcome.scores[split],
            )
    run.write_json("data.json", data.summary)
    summary = _summary(run, data, outcome, task)
    if run.accelerator.is_main_process:
        draw_training(run, outcome.training.get("best_step"))
        run.write_text("README.md", classification_readme(summary))
        _print_summary(run, summary)
    run.complete(summary)
    return summary


def draw_training(run: Run[Any], best_step: int | None, metric: str = "accuracy") -> None:
    """Draw ``plots/training.svg`` from what was logged; nothing where no step was.

    Args:
        metric: validation metric to show below the loss.
    """
    from toolkit.plots import save_figure

    figure = logged_curves(run.directory / METRICS, best_step, metric)
    if figure is not None:
        save_figure(figure, run.directory / "plots" / "training.svg")


def logged_curves(log: Path, best_step: int | None, metric: str) -> Figure | None:
    """Loss and a validation metric as a ``metrics.jsonl`` has them; None where no step was."""
    from toolkit.plots import training_curves

    lines = log.read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    loss = [(event["step"], event["loss"]) for event in events if "loss" in event]
    validation = [
        (event["step"], event["validation"][metric])
        for event in events
        if event["step"] > 0 and "validation" in event
    ]
    name = f"validation {metric.replace('_', ' ')}"
    return training_curves(loss, validation, name, best_step) if loss else None


def write_predictions(file: Path, rows: Any, scores: Scores) -> None:
    """One row per example: id, text or place of the image, label, prediction, probabilities, loss.

    The second text of a pair comes after the first, as ``pair``.

    Args:
        rows: with the columns id and label, and text, text and pair, or image.
    """
    labels = np.asarray(rows["label"][:])
    truth = scores.probabilities[np.arange(len(labels)), labels]
    shown = [name for name in ("text", "pair", "image") if name in rows.column_names]
    table = pyarrow.table(
        {
            "id": pyarrow.array(rows["id"][:], pyarrow.string()),
            **{name: pyarrow.array(rows[name][:], pyarrow.string()) for name in shown},
            "label": pyarrow.array(labels, pyarrow.int64()),
            "prediction": pyarrow.array(scores.predictions, pyarrow.int64()),
            "probabilities": pyarrow.array(list(scores.probabilities)),
            "loss": pyarrow.array(-np.log(np.maximum(truth, np.finfo(np.float64).tiny))),
        }
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(table, file)


def _summary(run: Run[Any], data: LabelledSplits, outcome: Outcome, task: str) -> dict[str, Any]:
    metrics = {
        split: describe_metrics(
            np.asarray(getattr(data, split)["label"][:]),
            outcome.scores[split].predictions,
            len(data.label_names),
        )
        for split in SPLITS
    }
    return {
        **describe_run(run, outcome.title, task, data.summary),
        "model": outcome.model,
        "data": {
            "dataset": data.summary["source"],
            **{f"{split}_examples": len(getattr(data, split)) for split in ("train", *SPLITS)},
            **({"pairs": True} if "pair" in data.train.column_names else {}),
            "label_names": data.label_names,
            "hashes": data.summary["sha256"],
        },
        "training": outcome.training,
        **metrics,
    }


def _print_summary(run: Run[Any], summary: dict[str, Any]) -> None:
    table = Table(title=f"{summary['title']}: {run.directory}", title_justify="left")
    for column in ("split", "examples", "accuracy", "95% interval", "macro F1", "95% interval"):
        table.add_column(column, justify="left" if column == "split" else "right")
    for split in SPLITS:
        accuracy, f1 = summary[split]["accuracy"], summary[split]["macro_f1"]
        table.add_row(
            split, f"{accuracy['n']:,}", f"{accuracy['value']:.1%}", _interval(accuracy),
            f"{f1['value']:.3f}", _interval(f1, ".3f"),
        )  # fmt: skip
    console.print(table)


def _interval(metric: dict[str, Any], form: str = ".1%") -> str:
    low, high = metric["interval"]
    return f"{low:{form}}-{high:{form}}"
