"""Label reviews with the demo's Chinese BERT: `toolkit predict` against transformers' pipeline.

Both have the same weights, float32, and both tokenise. The classifier's weights are random (a fixed
seed): speed does not depend on them, and wide ones spread the probabilities, which shows errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from toolkit.bench import BenchSettings, ResultsDiffer
from toolkit.bench.interleaved import run_once, time_in_turn
from toolkit.bench.record import BenchResult
from toolkit.console import notify
from toolkit.demo.chinese_bert import NAME as MODEL
from toolkit.demo.reviews import NAME as REVIEWS
from toolkit.demo.reviews import read_reviews
from toolkit.modeling import load_pretrained, load_tokenizer
from toolkit.prediction import Predictor, open_model
from toolkit.prediction.batches import sorted_batches
from toolkit.progress import progress_bar

OURS, PIPELINE, SORTED = "toolkit predict", "pipeline", "pipeline, sorted"
PIPELINE_BATCH = 32
TOLERANCE = 1e-5
"""Largest difference of a probability."""
LABELS = ["negative", "positive"]

Probabilities = list[list[float]]


def measure(settings: BenchSettings) -> BenchResult:
    """Compare the probabilities, then time.

    Raises:
        ResultsDiffer: a probability differs by more than the tolerance.
        UserError: model or reviews are not at hand.
    """
    texts = some_reviews(10_000 if settings.full else 600)
    with TemporaryDirectory(prefix="toolkit-bench-") as name:
        write_classifier(Path(name))
        return compare_speed(Path(name), texts, settings.rounds)


def some_reviews(count: int) -> list[str]:
    """Reviews of both classes in a random order, the same every time."""
    texts, _, _ = read_reviews()
    chosen = np.random.default_rng(0).permutation(len(texts))[:count]
    return [texts[row] for row in chosen]


def write_classifier(folder: Path, model: str = MODEL) -> None:
    """A model folder: a pretrained BERT with a random classifier on it.

    Args:
        model: folder or name of the BERT.
    """
    notify(f"{model} with a random classifier (seed 0), saved for both sides ...")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made: Any = load_pretrained(
            model, "sequence-classification", implementation="hf", label_names=LABELS
        ).model
        with torch.no_grad():
            made.classifier.weight.normal_()
    made.save_pretrained(folder)
    load_tokenizer(model).save_pretrained(folder)


def compare_speed(folder: Path, texts: Sequence[str], rounds: int) -> BenchResult:
    """As `measure`, for any folder of a classifier and any texts."""
    ours: Any = open_model(str(folder))
    lengths = _lengths(ours, texts)
    order = np.argsort(-lengths, kind="stable")
    theirs = _pipeline(folder, ours)
    contenders: dict[str, Callable[[], Probabilities]] = {
        PIPELINE: lambda: theirs(texts),
        SORTED: lambda: theirs([texts[row] for row in order]),
        OURS: lambda: _ours(ours, texts),
    }
    notify("comparing the results ...")
    results = run_once(contenders)
    by_row = [results[SORTED][place] for place in np.argsort(order, kind="stable")]
    agreement = check_agreement({**results, SORTED: by_row})
    with progress_bar("measuring", rounds * len(contenders)) as display:
        seconds = time_in_turn(contenders, rounds, display.advance)
    limits = ours.limits
    tokens = limits.on(next(ours.model.parameters()).device)
    return BenchResult(
        "predict",
        f"{len(texts):,} texts of {REVIEWS}; at most {limits.rows} of them or "
        f"{tokens:,} tokens at once, the pipeline {PIPELINE_BATCH} texts",
        OURS,
        seconds,
        rows=len(texts),
        real_tokens=int(lengths.sum()),
        padded_tokens={
            PIPELINE: _padded(lengths, range(len(texts)), PIPELINE_BATCH),
            SORTED: _padded(lengths, order, PIPELINE_BATCH),
            OURS: sum(
                len(rows) * int(lengths[rows].max())
                for rows in sorted_batches(lengths, limits.rows, tokens)
            ),
        },
        agreement=agreement,
    )


def check_agreement(results: dict[str, Probabilities]) -> dict[str, Any]:
    """The largest difference between ours and the others' probabilities, row by row.

    With differences within the tolerance a label can differ only where its two best probabilities
    are as close to each other; how many do is counted.

    Raises:
        ResultsDiffer: says where and by how much.
    """
    own = np.array(results[OURS])
    largest, others = 0.0, 0
    for name in (PIPELINE, SORTED):
        other = np.array(results[name])
        differences = np.abs(own - other).max(-1)
        row = int(differences.argmax())
        largest = max(largest, float(differences[row]))
        if not differences[row] <= TOLERANCE:
            raise ResultsDiffer(
                f"{OURS} and {name} differ by {differences[row]:.2g} in a probability of row "
                f"{row + 1}, where {TOLERANCE:g} is allowed: no ratio of speeds is given."
            )
        others += int((own.argmax(-1) != other.argmax(-1)).sum())
    return {
        "compared": "probabilities of all rows",
        "largest_difference": largest,
        "other_labels": others,
        "tolerance": TOLERANCE,
    }


def _ours(predictor: Predictor, texts: Sequence[str]) -> Probabilities:
    answers = predictor(texts, lambda _: None)
    return [list(answer["probabilities"].values()) for answer in answers]


def _pipeline(folder: Path, ours: Any) -> Callable[[Sequence[str]], Probabilities]:
    """transformers' own class in its own pipeline, on the same device, cut at the same length."""
    from transformers import AutoModelForSequenceClassification, pipeline

    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32)
    tokenizer = load_tokenizer(str(folder))
    classify = pipeline(
        "text-classification",
        model=model,
        tokenizer=tokenizer,
        device=next(ours.model.parameters()).device,
        batch_size=PIPELINE_BATCH,
    )

    def run(texts: Sequence[str]) -> Probabilities:
        found = classify(list(texts), top_k=None, truncation=True, max_length=ours.limit)
        return [
            [one["score"] for one in sorted(row, key=lambda one: LABELS.index(one["label"]))]
            for row in found
        ]

    return run


def _lengths(predictor: Any, texts: Sequence[str]) -> np.ndarray:
    """Tokens of every text as both sides read it."""
    encoded = predictor.tokenizer(list(texts), truncation=True, max_length=predictor.limit)
    return np.array([len(ids) for ids in encoded["input_ids"]])


def _padded(lengths: np.ndarray, order: Sequence[int] | np.ndarray, batch: int) -> int:
    sizes = lengths[np.asarray(order)]
    pieces = [sizes[start : start + batch] for start in range(0, len(sizes), batch)]
    return sum(len(piece) * int(piece.max()) for piece in pieces)
