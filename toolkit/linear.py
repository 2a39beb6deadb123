"""Linear classifiers whose only setting, the penalty, is chosen on validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.clock import Clock
from toolkit.console import notify
from toolkit.cost import cost_section
from toolkit.environment import peak_memory_bytes
from toolkit.outcome import LabelledSplits, Scores
from toolkit.run import Run


@dataclass(frozen=True)
class LinearResult:
    """A fitted classifier and what it said about validation and test."""

    classifier: Any
    penalty: float
    scores: dict[str, Scores]

    @property
    def parameters(self) -> int:
        """Weights and biases of the linear layer."""
        regression = self.classifier[-1]
        return int(regression.coef_.size + regression.intercept_.size)


def fit_linear(
    run: Run[Any],
    build: Callable[[float], Any],
    penalties: Sequence[float],
    features: dict[str, Any],
    data: LabelledSplits,
    clock: Clock,
) -> LinearResult:
    """Fit one classifier per penalty on train and keep the one that is best on validation.

    Args:
        build: makes an unfitted scikit-learn pipeline, ending in a logistic regression, from C, the
            inverse strength of its L2 penalty.
        features: what the pipeline takes, by split.
        clock: of what it takes to get the classifier; the fit with the chosen penalty is added.
    """
    run.forget_after(-1)  # a resumed run chooses anew
    labels = {split: np.asarray(getattr(data, split)["label"][:]) for split in features}
    fitted, accuracies = {}, {}
    for number, penalty in enumerate(penalties, start=1):
        fitted[penalty] = build(penalty).fit(features["train"], labels["train"])
        accuracy = float(fitted[penalty].score(features["validation"], labels["validation"]))
        accuracies[penalty] = accuracy
        event = {"step": 0, "C": penalty, "validation": {"accuracy": accuracy}}
        run.log(event, tracked_as=number)
    best = max(penalties, key=lambda penalty: accuracies[penalty])
    notify(
        f"logistic regression: C={best:g} of {len(penalties)} is the best on validation, accuracy "
        f"{accuracies[best]:.4f}"
    )
    with clock.running():
        classifier = build(best).fit(features["train"], labels["train"])
    scores = {
        split: Scores(classifier.predict_proba(features[split])) for split in ("validation", "test")
    }
    return LinearResult(classifier, best, scores)


def describe_linear_training(
    result: LinearResult,
    penalties: Sequence[float],
    clock: Clock,
    *,
    rows: int,
    tokens: int | None,
    padding: str,
) -> dict[str, Any]:
    """The ``training`` section of a summary.

    Args:
        clock: of everything the classifier took, features of the training texts included.
        tokens: real tokens the features were made from, where there are tokens.
        padding: how the batches were made that features were computed in.
    """
    seconds = clock.seconds
    return {
        "seconds": round(seconds, 3),
        "steps": 1,
        "epochs": 1,
        "examples_per_second": rows / seconds,
        "tokens_per_second": None if tokens is None else tokens / seconds,
        "best_step": None,
        "selection": "highest validation accuracy",
        "penalty": result.penalty,
        "penalties_tried": list(penalties),
        "peak_memory_bytes": peak_memory_bytes(),
        **cost_section(
            padding, seconds=seconds, joules=clock.joules, energy_source=clock.source, tokens=tokens
        ),
    }
