"""The scores of a model, over scikit-learn.

`toolkit.evaluate_metrics` offers the same numbers as `evaluate.Metric` classes; that library takes
seconds to import, so the training loop calls the functions here. scikit-learn and scipy take one,
and are imported when the first number is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toolkit.ignored_label import IGNORED


def accuracy(labels: NDArray[Any], predictions: NDArray[Any]) -> float:
    """Share of predictions that equal their label; NaN without examples."""
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(labels, predictions)) if len(labels) else math.nan


def classification_metrics(
    labels: ArrayLike, predictions: ArrayLike, num_labels: int
) -> dict[str, float]:
    """Accuracy and macro F1 over all labels of the model; both inputs of shape (examples,).

    NaN for both without examples. Raises ValueError for lengths that differ and for values that
    are not labels, i.e. whole numbers from 0 to num_labels - 1.
    """
    from toolkit.stats import macro_f1

    references, predicted = _checked(labels, predictions, num_labels)
    return {
        "accuracy": accuracy(references, predicted),
        "macro_f1": macro_f1(references, predicted, num_labels),
    }


def per_class_metrics(
    labels: ArrayLike, predictions: ArrayLike, label_names: Sequence[str]
) -> list[dict[str, Any]]:
    """One row per label, in id order: label, precision, recall, f1, support, predicted.

    `support` counts the examples of that label, `predicted` the examples given that label. What is
    undefined (no example, or none predicted) is 0. Raises as `classification_metrics`.
    """
    from sklearn.metrics import precision_recall_fscore_support

    num_labels = len(label_names)
    references, predicted = _checked(labels, predictions, num_labels)
    given = np.bincount(predicted, minlength=num_labels)
    support = np.bincount(references, minlength=num_labels)
    if len(references) == 0:
        precision = recall = f1 = np.zeros(num_labels)
    else:
        precision, recall, f1, _ = precision_recall_fscore_support(
            references, predicted, labels=np.arange(num_labels), zero_division=0
        )
    return [
        {
            "label": name,
            "precision": float(precision[i]),
            "recall": float(recall[i]),
            "f1": float(f1[i]),
            "support": int(support[i]),
            "predicted": int(given[i]),
        }
        for i, name in enumerate(label_names)
    ]


def masked_token_accuracy(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Accuracy over positions whose label is not -100; any shape, the same for both.

    NaN when no position is labelled. Raises ValueError for shapes that differ.
    """
    references, predicted = np.asarray(labels), np.asarray(predictions)
    if references.shape != predicted.shape:
        raise ValueError(f"labels of shape {references.shape}, predictions of {predicted.shape}")
    masked = references != IGNORED
    return accuracy(references[masked], predicted[masked])


def describe_metrics(
    labels: ArrayLike,
    predictions: ArrayLike,
    num_labels: int,
    seed: int = 0,
    draws: int | None = None,
) -> dict[str, dict[str, Any]]:
    """The metrics as a run's summary holds them: value, n, interval, interval_method, signature.

    `seed` and `draws` (None: 10,000) are those of the bootstrap behind the interval of macro F1.
    The signature names everything the value depends on; two numbers may be compared when theirs are
    equal. Value and interval are None without examples. Raises as `classification_metrics`.
    """
    from toolkit import stats

    draws = stats.BOOTSTRAP_DRAWS if draws is None else draws
    references, predicted = _checked(labels, predictions, num_labels)
    values = classification_metrics(references, predicted, num_labels)
    n = len(references)
    described: dict[str, dict[str, Any]] = {
        name: {
            "value": None if n == 0 else value,
            "n": n,
            "interval": None,
            "interval_method": None,
            "signature": _signature(name, n, num_labels),
        }
        for name, value in values.items()
    }
    if n == 0:
        return described

    wilson = stats.wilson_interval(int(np.sum(references == predicted)), n)
    described["accuracy"].update(interval=[wilson.low, wilson.high], interval_method=wilson.method)

    sampled = stats.macro_f1_draws(references, predicted[np.newaxis], num_labels, draws, seed)[0]
    percentile, standard_error = stats.bootstrap_interval(sampled)
    described["macro_f1"].update(
        interval=[percentile.low, percentile.high],
        interval_method=percentile.method,
        standard_error=standard_error,
        bootstrap={"draws": draws, "seed": seed},
    )
    return described


def _signature(name: str, n: int, num_labels: int) -> str:
    average = "|average:macro over all labels|zero division:0" if name == "macro_f1" else ""
    return f"{name}|n:{n}|labels:{num_labels}{average}|scikit-learn:{version('scikit-learn')}"


def _checked(
    labels: ArrayLike, predictions: ArrayLike, num_labels: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    references, predicted = np.asarray(labels), np.asarray(predictions)
    if references.ndim != 1 or references.shape != predicted.shape:
        raise ValueError(
            "labels and predictions must have one entry per example, "
            f"not shapes {references.shape} and {predicted.shape}"
        )
    return (
        _checked_ids("label", references, num_labels),
        _checked_ids("prediction", predicted, num_labels),
    )


def _checked_ids(what: str, values: NDArray[Any], num_labels: int) -> NDArray[np.int64]:
    with np.errstate(invalid="ignore"):
        ids = values.astype(np.int64)
    wrong = np.flatnonzero((ids != values) | (ids < 0) | (ids >= num_labels))
    if len(wrong) > 0:
        row = int(wrong[0])
        raise ValueError(
            f"the {what} in row {row} is {values[row]}; expected a whole number from 0 to "
            f"{num_labels - 1} ({len(wrong)} of {len(values)} rows are wrong)"
        )
    return ids
