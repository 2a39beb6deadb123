"""The end of a pretraining run: is the model better than guessing the most frequent token?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from toolkit.batching import Collate, Rows, evaluation_batches, load_batches
from toolkit.console import console
from toolkit.engine import FitResult
from toolkit.ignored_label import IGNORED
from toolkit.outcome import describe_training, draw_training
from toolkit.run import Run, describe_run
from toolkit.run_readme import markdown_table, run_readme, signatures
from toolkit.stats import wilson_interval


@dataclass(frozen=True)
class PretrainingData:
    """Documents as token ids (``toolkit.data.pretraining.tokenize_documents``)."""

    train: Any
    validation: Any


def unigram_guess(train: Any, validation: Any, collate: Collate, batch_size: int = 64) -> float:
    """Accuracy on the masked validation tokens of always saying the most frequent training token.

    What a model reaches that has learned nothing but how often each token occurs.

    Args:
        train: rows with ``sentences``, lists of lists of token ids.
    """
    counts: Counter[int] = Counter()
    for sentences in train["sentences"][:]:
        for sentence in sentences:
            counts.update(sentence)
    most_frequent = counts.most_common(1)[0][0]
    labels = np.concatenate(
        [
            batch["labels"][batch["labels"] != IGNORED].numpy()
            for batch in load_batches(
                Rows(validation), evaluation_batches(len(validation), batch_size, 0, 1), collate
            )
        ]
    )
    return float((labels == most_frequent).mean())


def finish_pretraining(
    run: Run[Any],
    result: FitResult,
    *,
    title: str,
    model: dict[str, Any],
    data_summary: dict[str, Any],
    outputs: dict[str, np.ndarray],
    guess: float,
) -> dict[str, Any]:
    """Write summary and README, print the result, and clear the checkpoints away.

    Args:
        outputs: per-example sums on validation (``toolkit.objectives.Pretraining.outputs``).
        guess: accuracy of ``unigram_guess`` on the same masked tokens.
    """
    masked, correct = int(outputs["masked"].sum()), int(outputs["correct"].sum())
    pairs, right = len(outputs["next_correct"]), int(outputs["next_correct"].sum())
    validation = {
        "masked_accuracy": _share(correct, masked, "masked tokens"),
        "next_sentence_accuracy": _share(right, pairs, "sentence pairs"),
        "masked_loss": {"value": float(outputs["loss"].sum() / masked), "n": masked},
        "unigram_guess": {"value": guess, "n": masked},
    }
    summary = {
        **describe_run(run, title, "pretraining", data_summary),
        "model": model,
        "data": data_summary,
        "training": describe_training(run, result),
        "validation": validation,
    }
    run.write_json("data.json", data_summary)
    if run.accelerator.is_main_process:
        draw_training(run, result.state.best_step, "masked_accuracy")
        run.write_text("README.md", _readme(summary))
        _print(run, title, validation)
    run.complete(summary)
    return summary


def _share(count: int, n: int, what: str) -> dict[str, Any]:
    interval = wilson_interval(count, n)
    return {
        "value": count / n,
        "n": n,
        "interval": [interval.low, interval.high],
        "interval_method": interval.method,
        "signature": f"accuracy over {what}|n:{n}",
    }


def _print(run: Run[Any], title: str, validation: dict[str, Any]) -> None:
    table = Table(title=f"{title}: {run.directory}", title_justify="left")
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column == _COLUMNS[0] else "right")
    for row in _rows(validation):
        table.add_row(*row)
    console.print(table)


_COLUMNS = ("on validation", "value", "95% interval")


def _rows(validation: dict[str, Any]) -> list[list[str]]:
    """What was measured: name, value and interval."""
    rows = []
    for name, label in (
        ("masked_accuracy", "masked tokens guessed right"),
        ("unigram_guess", "the most frequent token every time"),
        ("next_sentence_accuracy", "next sentence told from a wrong one"),
    ):
        metric = validation[name]
        interval = "{:.1%} to {:.1%}".format(*metric["interval"]) if "interval" in metric else ""
        rows.append([label, f"{metric['value']:.1%}", interval])
    return rows


_USE = """from transformers import pipeline
guess = pipeline("fill-mask", model="model")
print(guess(f"房间很干{guess.tokenizer.mask_token}，服务也好。"))
"""


def _readme(summary: dict[str, Any]) -> str:
    model, data, validation = summary["model"], summary["data"], summary["validation"]
    measured = [validation[name] for name in ("masked_accuracy", "next_sentence_accuracy")]
    return run_readme(
        summary,
        about=f"{model['architecture']} ({model['name']}), pretrained on "
        f"{data['sizes']['train']:,} texts of {data['source']}.",
        results=[*markdown_table(_COLUMNS, _rows(validation)), "", *signatures(measured)],
        use=_USE,
        predictions=None,
    )
