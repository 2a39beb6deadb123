"""Run directories made in a moment: what a recipe leaves behind, with chosen predictions."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import yaml

REVIEWS = [
    "房间很干净，服务也好。",
    "书太旧了，<b>不</b>推荐 | 失望",
    "电池 *三天* 就坏了",
    "位置方便，下次还来",
]


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy of `base` with the nested `changes` made."""
    result = dict(base)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def write_predictions(folder: Path, columns: dict[str, Any]) -> Path:
    path = folder / "predictions" / "test.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """`make_run(title, labels, predictions, summary={...}, **columns)` -> run directory.

    `summary` is merged into a complete summary; `columns` replace those of test.parquet, None
    leaves one out. `config` and `metrics` (events) are written as config.yaml and metrics.jsonl.
    """

    def make(
        title: str,
        labels: Sequence[int],
        predictions: Sequence[int],
        summary: dict[str, Any] | None = None,
        folder: str | None = None,
        config: dict[str, Any] | None = None,
        metrics: Sequence[dict[str, Any]] = (),
        **columns: Any,
    ) -> Path:
        labels, predictions = np.asarray(labels), np.asarray(predictions)
        n = len(labels)
        names = ((summary or {}).get("data") or {}).get("label_names", ["negative", "positive"])
        accuracy = float(np.mean(labels == predictions))
        base = {
            "schema_version": 1,
            "recipe": "bert_sentiment",
            "run_id": f"run-{title}",
            "title": title,
            "task": "text-classification",
            "status": "complete",
            "seed": 42,
            "command": f"accelerate launch recipes/bert_sentiment.py --method '{title}'",
            "model": {
                "name": f"model of {title}",
                "implementation": "scratch",
                "architecture": "ScratchBertForSequenceClassification",
                "method": "full",
                "parameters_total": 117_653_760,
                "parameters_trained": 21_450_000,
            },
            "data": {
                "dataset": "demo:reviews",
                "train_examples": 2000,
                "validation_examples": 500,
                "test_examples": n,
                "label_names": names,
                "hashes": {"train": "a" * 64, "validation": "b" * 64, "test": "c" * 64},
            },
            "training": {
                "seconds": 214.3,
                "tokens_per_second": 5231.7,
                "selection": "highest validation accuracy",
                "padding": "grouped by length",
            },
            "test": {
                "accuracy": {
                    "value": accuracy,
                    "n": n,
                    "signature": f"accuracy|n:{n}|labels:{len(names)}|scikit-learn:1.9.1",
                },
                "macro_f1": {
                    "value": 0.5,
                    "n": n,
                    "signature": f"macro_f1|n:{n}|labels:{len(names)}|average:macro",
                },
            },
            "environment": {
                "device": "cpu",
                "threads": 2,
                "precision": "fp32",
                "processes": 1,
                "python": "3.11.9",
                "torch": "2.14.1",
                "transformers": "5.24.0",
            },
        }
        run = tmp_path / (folder or title.replace(" ", "-"))
        run.mkdir()
        text = json.dumps(merged(base, summary or {}), ensure_ascii=False)
        (run / "summary.json").write_text(text, encoding="utf-8")
        if config is not None:
            (run / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        if metrics:
            lines = "".join(json.dumps(event) + "\n" for event in metrics)
            (run / "metrics.jsonl").write_text(lines, encoding="utf-8")
        probabilities = np.full((n, len(names)), 0.2 / max(1, len(names) - 1))
        probabilities[np.arange(n), np.clip(predictions, 0, len(names) - 1)] = 0.8
        table = {
            "id": [f"id-{row}" for row in range(n)],
            "text": [f"{REVIEWS[row % len(REVIEWS)]} 第{row}条" for row in range(n)],
            "label": labels,
            "prediction": predictions,
            "probabilities": list(probabilities),
            "loss": np.full(n, 0.25),
        }
        table.update(columns)
        write_predictions(run, {key: value for key, value in table.items() if value is not None})
        return run

    return make


def predictions_right_at(labels: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Predictions of two classes that are right exactly where `right` says."""
    return np.where(right, labels, 1 - labels)
