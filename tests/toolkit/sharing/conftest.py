"""A Hub on this machine, and a run to push to it."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import yaml

TOKEN = "hf_loopbackTokenOfTheTestsNoSecret1"
READ_TOKEN = "hf_loopbackTokenThatMayOnlyReadAaa"
USAGE = """from transformers import pipeline
classify = pipeline("text-classification", model="{model}")
print(classify("房间很好"))
"""


class _NoPause:
    """The module `time`, but for its `sleep`."""

    time = staticmethod(time.time)

    @staticmethod
    def sleep(seconds: float) -> None:
        pass


def loopback() -> ModuleType:
    """The package of the server: the tests themselves are files, no package."""
    name = "tests_loopback_hub"
    if name not in sys.modules:
        folder = Path(__file__).with_name("loopback_hub")
        specification = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert specification is not None
        assert specification.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A Hub with the account `lin`, whose token is in the environment; clients of it use LFS."""
    from huggingface_hub import constants

    module = loopback()
    with module.loopback_hub() as server:
        server.users[TOKEN] = module.User("lin", organisations=("lab",))
        server.users[READ_TOKEN] = module.User("lin", role="read")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-login"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        # The client's own pauses between attempts.
        monkeypatch.setattr("huggingface_hub.utils._http.time", _NoPause)
        monkeypatch.setattr("toolkit.sharing.upload.PAUSES", (0.0, 0.0))
        yield server


def summary(**changes: Any) -> dict[str, Any]:
    """Of a run that told good reviews from bad ones."""

    def metric(value: float, low: float, high: float, name: str) -> dict[str, Any]:
        return {
            "value": value, "n": 4, "interval": [low, high], "interval_method": "wilson 95%",
            "signature": f"{name}|n:4",
        }  # fmt: skip

    measured = {
        "accuracy": metric(0.75, 0.301, 0.954, "accuracy"),
        "macro_f1": metric(0.733, 0.2, 1.0, "macro_f1"),
    }
    content: dict[str, Any] = {
        "schema_version": 1,
        "recipe": "bert_sentiment",
        "run_id": "r1",
        "title": "tiny BERT, full",
        "task": "text-classification",
        "status": "complete",
        "seed": 42,
        "command": "python recipes/bert_sentiment.py --dataset /home/lin/data/reviews.csv",
        "environment": {
            "device": "cpu", "threads": 1, "precision": "fp32", "processes": 1,
            "processor": "a processor", "gpus": [], "python": "3.11.7",
            "git": {"commit": "c0ffee" + 34 * "0", "dirty": True}, "torch": "2.14.1",
            "transformers": "5.24.0",
        },
        "model": {
            "name": "google-bert/bert-base-chinese", "implementation": "scratch",
            "architecture": "ScratchBertForSequenceClassification", "method": "full",
            "parameters_total": 1000, "parameters_trained": 1000,
        },
        "data": {
            "dataset": "/home/lin/data/reviews.csv", "train_examples": 30,
            "validation_examples": 4, "test_examples": 4, "label_names": ["负面", "正面"],
            "hashes": {"train": "ab" * 32, "validation": "cd" * 32, "test": "ef" * 32},
        },
        "training": {
            "seconds": 12.5, "steps": 20, "epochs": 2, "examples_per_second": 4.8,
            "tokens_per_second": 100.0, "best_step": 10, "stopped_early": False,
            "selection": "highest validation accuracy", "peak_memory_bytes": 10**9,
            "padding": "grouped by length", "energy_joules": 7384.2,
            "energy_source": "RAPL of 1 processor",
        },
        "validation": measured,
        "test": measured,
    }  # fmt: skip
    for key, value in changes.items():
        part = key not in ("validation", "test") and isinstance(value, dict)
        content[key] = {**content.get(key, {}), **value} if part else value
    return content


ROWS = [
    ("a", "今天房间脏", 0, 1), ("b", "酒店很烂" * 60, 0, 0), ("c", "服务好|棒", 1, 1),
    ("d", "早餐美", 1, 1),
]  # fmt: skip


@pytest.fixture
def make_run(
    tmp_path: Path, write_tiny_bert: Callable[..., Path]
) -> Callable[..., Path]:  # fmt: skip
    """Write a complete run: `make_run(test={...})` with other parts of its summary."""

    def make(**changes: Any) -> Path:
        run = tmp_path / "results" / "runs" / "bert_sentiment" / "r1"
        run.mkdir(parents=True)
        content = summary(**changes)
        (run / "summary.json").write_text(json.dumps(content), encoding="utf-8")
        config = {"dataset": "/home/lin/data/reviews.csv", "output_dir": "results/runs",
                  "train": {"batch_size": 8, "learning_rate": 2e-5, "schedule": "linear",
                            "optimizer": "adamw", "weight_decay": 0.01}}  # fmt: skip
        (run / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        data = {
            "class_counts": {"train": {"负面": 24, "正面": 6}},
            "tokenization": {
                "max_length": 32, "splits": {"test": {"rows_cut": 1, "unknown_share": 0.05}},
            },
        }  # fmt: skip
        (run / "data.json").write_text(json.dumps(data), encoding="utf-8")
        environment = {"packages": {"scratch-models-toolkit": "0.1.0"}, "code": "12" * 32}
        (run / "environment.json").write_text(json.dumps(environment), encoding="utf-8")
        events = [{"step": 10, "loss": 0.6}, {"step": 10, "validation": {"accuracy": 0.75}},
                  {"step": 20, "loss": 0.5}]  # fmt: skip
        lines = "".join(json.dumps(event) + "\n" for event in events)
        (run / "metrics.jsonl").write_text(lines, encoding="utf-8")
        columns = dict(
            zip(("id", "text", "label", "prediction"), zip(*ROWS, strict=True), strict=True)
        )
        (run / "predictions").mkdir()
        table = pyarrow.table({name: list(values) for name, values in columns.items()})
        pyarrow.parquet.write_table(table, run / "predictions" / "test.parquet")
        write_tiny_bert(
            run / "model", "BertForSequenceClassification",
            id2label={0: "负面", 1: "正面"}, label2id={"负面": 0, "正面": 1},
        )  # fmt: skip
        return run

    return make


@pytest.fixture
def copied_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is a copy of the run's model, and its check in a fresh process is left out.

    For tests of what comes before and after these two, which have tests of their own.
    """
    from toolkit.sharing.shareable import Shareable

    def write(run: Path, folder: Path, *, merged: bool | None = None) -> Shareable:
        shutil.copytree(run / "model" if (run / "model").is_dir() else run, folder)
        return Shareable(
            folder, "transformers", "text-classification", None, False, USAGE, "logits compared"
        )

    def draw(record: Any, file: Path) -> bool:
        file.write_bytes(b"\x89PNG")
        return True

    monkeypatch.setattr("toolkit.sharing.staging.write_shareable", write)
    monkeypatch.setattr("toolkit.sharing.staging._draw", draw)
    fresh_process = ModuleType("toolkit.sharing.fresh_process")
    fresh_process.check_shareable = lambda shareable, run: 0.0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "toolkit.sharing.fresh_process", fresh_process)


@pytest.fixture
def toolkit_command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Call `toolkit`: exit code, what it prints, what it remarks."""

    def call(*arguments: object) -> tuple[int, str, str]:
        from toolkit.cli import main

        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return int(end.value.code or 0), captured.out, captured.err

    return call
