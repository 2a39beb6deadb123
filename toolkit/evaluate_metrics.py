"""The project's metrics for users of the `evaluate` library.

`evaluate.load("accuracy")` asks the Hub for the metric's code every time. The classes here are the
code: they need no network, keep their inputs in memory and leave no files behind.
"""

from __future__ import annotations

from typing import Any

import datasets
import evaluate
from numpy.typing import NDArray

from toolkit import metrics, stats


class InMemoryMetric(evaluate.Metric):
    """A metric over two columns of integers that touches neither the network nor the disk."""

    description = ""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(keep_in_memory=True, **kwargs)

    def _build_data_dir(self) -> str:
        # The parent creates this folder even when everything stays in memory and it is never used.
        return self._data_dir_root

    def _info(self) -> evaluate.MetricInfo:
        integers = datasets.Value("int64")
        return evaluate.MetricInfo(
            description=self.description,
            citation="",
            inputs_description="",
            features=datasets.Features({"predictions": integers, "references": integers}),
            format="numpy",
        )


class Accuracy(InMemoryMetric):
    """`toolkit.metrics.accuracy`."""

    description = "Share of predictions that equal their reference."

    def _compute(self, predictions: NDArray[Any], references: NDArray[Any]) -> dict[str, float]:
        return {"accuracy": metrics.accuracy(references, predictions)}


class MacroF1(InMemoryMetric):
    """`toolkit.stats.macro_f1`; `compute` takes `num_labels` besides."""

    description = "Unweighted mean of F1 over all labels of the model."

    def _compute(
        self, predictions: NDArray[Any], references: NDArray[Any], num_labels: int
    ) -> dict[str, float]:
        return {"macro_f1": stats.macro_f1(references, predictions, num_labels)}


class MaskedTokenAccuracy(InMemoryMetric):
    """`toolkit.metrics.masked_token_accuracy`: positions labelled -100 are left out."""

    description = "Accuracy over the tokens that masked language modelling asks for."

    def _compute(self, predictions: NDArray[Any], references: NDArray[Any]) -> dict[str, float]:
        value = metrics.masked_token_accuracy(references, predictions)
        return {"masked_token_accuracy": value}
