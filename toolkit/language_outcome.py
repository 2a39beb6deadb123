"""The end of a language model's run: scored, set beside what counting reaches, written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray
from rich.table import Table

from toolkit.batching import Collate
from toolkit.console import console
from toolkit.evaluation import Outputs
from toolkit.json_values import without_nan
from toolkit.language_modeling import (
    HeldOut,
    LanguageModelData,
    describe_scores,
    per_document,
    perplexity,
)
from toolkit.ngrams import ngram_losses
from toolkit.objectives import Objective
from toolkit.outcome import SPLITS, describe_training, draw_training
from toolkit.run import Run, describe_run
from toolkit.run_predictions import predict_rows, save_predictions
from toolkit.run_readme import Findings, how_trained, markdown_table, run_readme, signatures
from toolkit.training.engine import FitResult

BEFORE = "before training"

Losses = dict[str, NDArray[np.float64]]
"""Nats of every document, by split."""


def score_documents(
    run: Run[Any],
    model: Any,
    data: LanguageModelData,
    objective: Objective,
    collate: Collate,
    known: dict[str, Outputs | None] | None = None,
) -> Losses:
    """Run a model over the windows of validation and test.

    Args:
        known: results of `objective` by split, where training has just had them.
    """
    losses = {}
    for name in SPLITS:
        split, outputs = data.splits[name], (known or {}).get(name)
        if outputs is None:
            outputs = predict_rows(
                run, f"scoring {name}", model, split.windows, objective.outputs, collate
            )
        losses[name] = per_document(outputs, split)
    return losses


def finish_language_model(
    run: Run[Any],
    result: FitResult,
    data: LanguageModelData,
    *,
    title: str,
    model: dict[str, Any],
    losses: Losses,
    before: Losses | None,
    vocab_size: int,
) -> dict[str, Any]:
    """Write summary, losses per document and README, print the result, and complete the run.

    Args:
        losses: of the best model.
        before: of the model before training, where it was pretrained.
        vocab_size: tokens that models which only count spread their probability over.
    """
    scores, yardsticks = {}, {}
    for name in SPLITS:
        split = data.splits[name]
        others = ngram_losses(data.train_tokens, split.tokens, vocab_size)
        others |= {BEFORE: before[name]} if before else {}
        described = describe_scores({"model": losses[name], **others}, split, data)
        scores[name] = described.pop("model")
        yardsticks[name] = {other: values["perplexity"] for other, values in described.items()}
    summary = without_nan(
        {
            **describe_run(run, title, "language-modeling", data.summary),
            "model": model,
            "data": {
                "dataset": data.summary["source"],
                **{f"{name}_documents": size for name, size in data.summary["sizes"].items()},
                "word": data.word,
                "hashes": data.summary["sha256"],
            },
            "training": describe_training(run, result),
            **scores,
            "yardsticks": yardsticks,
        }
    )
    run.write_json("data.json", data.summary)
    if run.accelerator.is_main_process:
        for name in SPLITS:
            _write_losses(run, name, data.splits[name], losses[name])
        draw_training(run, result.state.best_step, "loss")
        run.write_text("README.md", _readme(summary))
        _print(run, summary)
    run.complete(summary)
    return summary


def _write_losses(run: Run[Any], name: str, split: HeldOut, nll: NDArray[np.float64]) -> None:
    """One row per document: id, text, nll (nats), and what it can be divided by."""
    tokens = [len(ids) - 1 for ids in split.tokens]
    table = pyarrow.table(
        {
            "id": pyarrow.array(split.ids, pyarrow.string()),
            "text": pyarrow.array(split.texts, pyarrow.string()),
            "nll": pyarrow.array(nll, pyarrow.float64()),
            "tokens": pyarrow.array(tokens, pyarrow.int64()),
            "words": pyarrow.array(split.words, pyarrow.int64()),
            "bytes": pyarrow.array(split.bytes, pyarrow.int64()),
            "perplexity": pyarrow.array(
                [perplexity(total, max(n, 1)) for total, n in zip(nll, tokens, strict=True)]
            ),
        }
    )
    save_predictions(run, name, table)


def _rows(summary: dict[str, Any]) -> list[list[str]]:
    """What was measured: name, and on each split value and interval."""
    word = summary["data"]["word"]
    rows = [
        [label, *(_shown(summary[split][key]) for split in SPLITS)]
        for key, label in (
            ("perplexity", "perplexity per token"),
            ("word_perplexity", f"perplexity per {word}"),
            ("bits_per_byte", "bits per byte"),
        )
    ]
    for other in reversed(summary["yardsticks"]["test"]):
        values = (summary["yardsticks"][split][other] for split in SPLITS)
        rows.append([f"per token, {other}", *map(_shown, values)])
    return rows


def _shown(metric: dict[str, Any]) -> str:
    def number(value: float | None) -> str:
        return "infinite" if value is None else f"{value:,.2f}"

    interval = metric["interval"]
    around = f" ({' to '.join(map(number, interval))})" if interval else ""
    return number(metric["value"]) + around


def _print(run: Run[Any], summary: dict[str, Any]) -> None:
    table = Table(title=f"{summary['title']}: {run.directory}", title_justify="left")
    table.add_column("(95% interval)")
    for split in SPLITS:
        table.add_column(f"{split}, {summary[split]['perplexity']['n']:,} documents")
    for row in _rows(summary):
        table.add_row(*row)
    console.print(table)


_USE = """from transformers import pipeline
write = pipeline("text-generation", model="model")
print(write("…", do_sample=True, top_p=0.95, max_new_tokens=60))
"""


def _readme(summary: dict[str, Any]) -> str:
    findings = language_findings(summary)
    return run_readme(summary, findings, use=_USE, predictions="the loss of every document")


def language_findings(summary: dict[str, Any]) -> Findings:
    """What was trained on what, and how well it foresees texts, beside what counting reaches."""
    model, data, training = summary["model"], summary["data"], summary["training"]
    return Findings(
        how_trained(
            model, f"{data['train_documents']:,} documents of {data['dataset']}", training["steps"]
        )
        + ".",
        [
            *markdown_table(("(95% interval)", "validation", "test"), _rows(summary)),
            "",
            *signatures([summary["test"]["perplexity"]]),
        ],
    )
