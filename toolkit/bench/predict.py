"""Label reviews with the demo's Chinese BERT: `toolkit predict` against transformers' pipeline.

Both have the same weights, float32, and both tokenise. The classifier's weights are random (a fixed
seed): speed does not depend on them, and wide ones spread the probabilities, which shows errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from toolkit.bench.agreement import agree
from toolkit.bench.case import Case, Program, Side
from toolkit.bench.settings import BenchSettings
from toolkit.console import notify
from toolkit.data.tokenization import length_limit
from toolkit.demo.chinese_bert import NAME as MODEL
from toolkit.demo.reviews import NAME as REVIEWS
from toolkit.demo.reviews import read_reviews
from toolkit.modeling import load_pretrained, load_tokenizer, read_config
from toolkit.prediction import Predictor, open_model
from toolkit.prediction.batches import CPU_TOKENS, BatchLimits
from toolkit.prediction.predictor import Options

OURS, PIPELINE, SORTED = "toolkit predict", "pipeline", "pipeline, sorted"
PIPELINE_BATCH = 32
TOLERANCE = 1e-5
"""Largest difference of a probability."""
LABELS = ["negative", "positive"]
NO_LIMIT = 1 << 30

Probabilities = list[list[float]]


def cases(settings: BenchSettings) -> list[Case]:
    """One.

    Raises:
        UserError: model or reviews are not at hand.
    """
    texts = some_reviews(10_000 if settings.full else 128)
    return [case_of(texts, MODEL, settings.device)]


def case_of(texts: Sequence[str], model: str, device: str = "cpu") -> Case:
    """As `cases`, for any texts and the folder or name of any BERT."""
    tokenizer = load_tokenizer(model)
    limit = length_limit(NO_LIMIT, tokenizer, read_config(model))
    lengths = _lengths(tokenizer, limit, texts)
    order = np.argsort(-lengths, kind="stable")
    limits = BatchLimits()
    real = int(lengths.sum())

    def sorted_pipeline(folder: Path) -> Program:
        classify = _pipeline(folder, limit, device)
        places = np.argsort(order, kind="stable")

        def run() -> Probabilities:
            found = classify([texts[row] for row in order])
            return [found[place] for place in places]

        return run

    return Case(
        name="predict",
        task=f"{len(texts):,} texts of {REVIEWS}; at most {limits.rows} of them or "
        f"{CPU_TOKENS:,} tokens at once, the pipeline {PIPELINE_BATCH} texts",
        sides={
            PIPELINE: Side(
                lambda folder: partial(_pipeline(folder, limit, device), texts),
                _padded(lengths, range(len(texts)), PIPELINE_BATCH),
            ),
            SORTED: Side(sorted_pipeline, _padded(lengths, order, PIPELINE_BATCH)),
            OURS: Side(
                lambda folder: partial(
                    _ours, open_model(str(folder), Options(device=device)), texts
                ),
                real,
            ),
        },
        ours=OURS,
        prepare=partial(write_classifier, model=model),
        check=lambda results, _: check_agreement(results),
        rows=len(texts),
        units=real,
    )


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


def check_agreement(results: Mapping[str, Probabilities]) -> dict[str, Any]:
    """`agree`, and how many rows have another label.

    With differences within the tolerance a label can differ only where its two best probabilities
    are as close to each other.

    Raises:
        ResultsDiffer: says where and by how much.
    """
    found = agree(results, OURS, "probabilities of all rows", TOLERANCE)
    labels = {name: np.array(rows).argmax(-1) for name, rows in results.items()}
    others = sum(int((labels[name] != labels[OURS]).sum()) for name in (PIPELINE, SORTED))
    return {**found, "other_labels": others}


def _ours(predictor: Predictor, texts: Sequence[str]) -> Probabilities:
    answers = predictor(texts, lambda _: None)
    return [list(answer["probabilities"].values()) for answer in answers]


def _pipeline(folder: Path, limit: int, device: str) -> Callable[[Sequence[str]], Probabilities]:
    """transformers' own class in its own pipeline, on the same device, cut at the same length."""
    from transformers import AutoModelForSequenceClassification, pipeline

    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32)
    tokenizer = load_tokenizer(str(folder))
    classify = pipeline(
        "text-classification",
        model=model,
        tokenizer=tokenizer,
        device=device,
        batch_size=PIPELINE_BATCH,
    )

    def run(texts: Sequence[str]) -> Probabilities:
        found = classify(list(texts), top_k=None, truncation=True, max_length=limit)
        return [
            [one["score"] for one in sorted(row, key=lambda one: LABELS.index(one["label"]))]
            for row in found
        ]

    return run


def _lengths(tokenizer: Any, limit: int, texts: Sequence[str]) -> np.ndarray:
    """Tokens of every text as both sides read it."""
    encoded = tokenizer(list(texts), truncation=True, max_length=limit)
    return np.array([len(ids) for ids in encoded["input_ids"]])


def _padded(lengths: np.ndarray, order: Sequence[int] | np.ndarray, batch: int) -> int:
    sizes = lengths[np.asarray(order)]
    pieces = [sizes[start : start + batch] for start in range(0, len(sizes), batch)]
    return sum(len(piece) * int(piece.max()) for piece in pieces)
