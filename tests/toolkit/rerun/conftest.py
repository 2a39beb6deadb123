"""Complete runs that were made in a moment."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import torch
from safetensors.torch import save_file

SUMMARY: dict[str, Any] = {
    "schema_version": 1, "title": "t", "task": "text-classification", "status": "complete",
    "model": {}, "training": {"seconds": 1.5},
    "environment": {"processes": 1, "precision": "fp32", "device": "cpu"},
    "data": {"hashes": {"train": "a", "test": "b"}},
    "validation": {"accuracy": {"value": 0.5, "interval": [0.25, 0.75]}},
    "test": {"accuracy": {"value": 0.5, "interval": [0.25, 0.75], "signature": "s"}},
}  # fmt: skip
EVENTS = [
    {"step": 1, "seconds": 0.1, "loss": 0.75},
    {"step": 2, "seconds": 0.2, "loss": 0.5},
    {"step": 2, "seconds": 0.2, "validation": {"accuracy": 0.5}},
]


@pytest.fixture
def write_run(tmp_path: Path) -> Callable[..., Path]:
    """`write_run(name, part=...)`: a run directory; parts replace the usual ones."""

    def write(
        name: str,
        summary: dict[str, Any] | None = None,
        events: list[dict[str, Any]] | None = None,
        tensors: dict[str, torch.Tensor] | None = None,
        rows: list[dict[str, Any]] | None = None,
        environment: dict[str, Any] | None = None,
        config: str = "seed: 1\n",
    ) -> Path:
        folder = tmp_path / "runs" / "again" / name
        (folder / "model").mkdir(parents=True)
        (folder / "predictions").mkdir()
        (folder / "config.yaml").write_text(config, "utf-8")
        started = {"recipe": "again", "command": "python recipes/again.py --seed 1"}
        (folder / "environment.json").write_text(json.dumps(started | (environment or {})))
        (folder / "summary.json").write_text(json.dumps(SUMMARY | (summary or {})))
        log = "".join(json.dumps(event) + "\n" for event in events or EVENTS)
        (folder / "metrics.jsonl").write_text(log)
        weights = tensors or {"w": torch.arange(6.0).view(2, 3), "b": torch.tensor([0.0, 1.0])}
        save_file(weights, folder / "model" / "model.safetensors")
        cells = rows or [{"id": "x", "p": [0.25, 0.75]}, {"id": "y", "p": [0.5, 0.5]}]
        table = pyarrow.Table.from_pylist(cells)
        pyarrow.parquet.write_table(table, folder / "predictions" / "test.parquet")
        return folder

    return write
