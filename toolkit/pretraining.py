"""The end of a pretraining run: is the model better than guessing the most frequent token?"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow
from rich.table import Table

from toolkit.batching import Collate, Rows, evaluation_batches, load_batches
from toolkit.console import console
from toolkit.data.pretraining import PretrainingCollator
from toolkit.evaluation import Outputs
from toolkit.ignored_label import IGNORED
from toolkit.objectives import Batch
from toolkit.outcome import describe_training, draw_training
from toolkit.run import Run, describe_run
from toolkit.run_predictions import save_predictions
from toolkit.run_readme import Findings, markdown_table, run_readme, signatures
from toolkit.stats import wilson_interval
from toolkit.training.engine import FitResult


@dataclass(frozen=True)
class PretrainingData:
    """Documents as token ids (``toolkit.data.pretraining.tokenize_documents``).

    ``texts`` are what the validation documents were made of, ``summary`` what data.json records.
    """

    train: Any
    validation: Any
    texts: Sequence[str]
    summary: dict[str, Any]


def unigram_guess(train: Any, validation: Any, collate: Collate) -> float:
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
            for batch in _evaluated(validation, collate)
        ]
    )
    return float((labels == most_frequent).mean())


def masked_hash(validation: Any, collate: Collate) -> str:
    """SHA-256 over what is shown and asked of every row, in order.

    Equal exactly where two models were asked for the same tokens at the same places of the same
    texts: it depends on texts, tokenizer, length, share and seed of the masks, and on no batch.
    """
    digest = hashlib.sha256()
    for batch in _evaluated(validation, collate):
        columns = (batch["input_ids"], batch["labels"], batch["attention_mask"].bool())
        for ids, labels, real, follows in zip(*columns, batch["next_sentence_label"], strict=True):
            numbers = [int(real.sum()), int(follows), *ids[real].tolist(), *labels[real].tolist()]
            digest.update(np.array(numbers, dtype="<i8").tobytes())
    return digest.hexdigest()


def _evaluated(validation: Any, collate: Collate) -> Iterable[Batch]:
    """The rows as every evaluation masks them, in their order."""
    return load_batches(Rows(validation), evaluation_batches(len(validation), 64, 0, 1), collate)


def finish_pretraining(
    run: Run[Any],
    result: FitResult,
    data: PretrainingData,
    outputs: Outputs,
    *,
    collate: PretrainingCollator,
    title: str,
    model: dict[str, Any],
) -> dict[str, Any]:
    """Write summary, predictions and README, print the result, and clear the checkpoints away.

    There is no test set: what was chosen on is what is reported, and its predictions are
    ``predictions/validation.parquet``.

    Args:
        outputs: per-example sums on validation (``toolkit.objectives.Pretraining.outputs``).
        collate: of the validation rows.
    """
    masked, correct = int(outputs["masked"].sum()), int(outputs["correct"].sum())
    pairs, right = len(outputs["next_correct"]), int(outputs["next_correct"].sum())
    guess = unigram_guess(data.train, data.validation, collate)
    masks = masked_hash(data.validation, collate)
    loss = float(outputs["loss"].sum(dtype=np.float64) / masked)
    validation = {
        "masked_accuracy": _share(correct, masked, "masked tokens", masks),
        "next_sentence_accuracy": _share(right, pairs, "sentence pairs", masks),
        "masked_loss": {
            "value": loss,
            "n": masked,
            "signature": f"nats per masked token|n:{masked}|masks:{masks[:12]}",
        },
        "unigram_guess": {"value": guess, "n": masked},
    }
    summary = {
        **describe_run(run, title, "pretraining", data.summary),
        "model": model,
        "data": {
            "dataset": data.summary["source"],
            "train_examples": data.summary["sizes"]["train"],
            "validation_examples": pairs,  # those long enough to be a pair
            "hashes": data.summary["sha256"],
            # Runs are comparable where the hash is the same.
            "masking": {
                "seed": collate.seed,
                "share": collate.mask_share,
                "max_length": collate.max_length,
                "validation_sha256": masks,
            },
        },
        "training": describe_training(run, result),
        "validation": validation,
    }
    run.write_json("data.json", data.summary)
    if run.accelerator.is_main_process:
        save_predictions(run, "validation", _predictions(data, outputs))
        draw_training(run, result.state.best_step, "masked_accuracy")
        run.write_text("README.md", _readme(summary))
        _print(run, title, validation)
    run.complete(summary)
    return summary


def _predictions(data: PretrainingData, outputs: Outputs) -> pyarrow.Table:
    """One row per document: id, text, masked tokens, those guessed right, their summed loss; pair.

    Texts that are too short to be a pair of sentences are not there: nothing was asked of them.
    """
    places = data.validation["text"][:]
    texts = [data.texts[place] for place in places]
    return pyarrow.table(
        {
            "id": [
                f"{hashlib.sha256(text.encode()).hexdigest()[:12]}-{place + 1}"
                for text, place in zip(texts, places, strict=True)
            ],
            "text": texts,
            "masked": pyarrow.array(outputs["masked"], pyarrow.int64()),
            "correct": pyarrow.array(outputs["correct"], pyarrow.int64()),
            "loss_sum": pyarrow.array(outputs["loss"].astype(np.float64)),
            "next_correct": pyarrow.array(outputs["next_correct"], pyarrow.int64()),
        }
    )


def _share(count: int, n: int, what: str, masks: str) -> dict[str, Any]:
    interval = wilson_interval(count, n)
    return {
        "value": count / n,
        "n": n,
        "interval": [interval.low, interval.high],
        "interval_method": interval.method,
        "signature": f"accuracy over {what}|n:{n}|masks:{masks[:12]}",
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
    guessed = "what was guessed of every validation text"
    return run_readme(summary, pretraining_findings(summary), use=_USE, predictions=guessed)


def pretraining_findings(summary: dict[str, Any]) -> Findings:
    """What was trained on what, and how much it guesses, beside the most frequent token."""
    model, data, validation = summary["model"], summary["data"], summary["validation"]
    measured = [validation[name] for name in ("masked_accuracy", "next_sentence_accuracy")]
    return Findings(
        f"{model['architecture']} ({model['name']}), pretrained on "
        f"{data['train_examples']:,} texts of {data['dataset']}.",
        [*markdown_table(_COLUMNS, _rows(validation)), "", *signatures(measured)],
    )
