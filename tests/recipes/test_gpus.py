"""The launcher files on GPUs: each starts what it names, and a run is the run of one process."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

HERE = Path(__file__).parent
RECIPES = HERE.parents[1] / "recipes"
DEEPSPEED = importlib.util.find_spec("deepspeed") is not None
pytestmark = pytest.mark.gpu
one_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs 2 GPUs")


def launch(name: str, *words: object, precision: str | None = None) -> None:
    """With a file of recipes/accelerate/, in the precision of the file or another."""
    command = [
        sys.executable, "-m", "accelerate.commands.launch", "--config_file",
        RECIPES / "accelerate" / f"{name}.yaml", "--main_process_port", "0",
        *(("--mixed_precision", precision) if precision else ()), *words,
    ]  # fmt: skip
    # The tests' own setting would keep the processes off the GPUs.
    environment = {key: value for key, value in os.environ.items() if key != "ACCELERATE_USE_CPU"}
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env=environment,
        timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


SETUPS: dict[str, dict[str, Any]] = {
    "gpu": {"type": "NO", "fsdp2": False, "processes": 1},
    "ddp": {"type": "MULTI_GPU", "fsdp2": False, "processes": 2},
    "fsdp2": {"type": "FSDP", "fsdp2": True, "processes": 2},
    "deepspeed_zero2": {"type": "DEEPSPEED", "fsdp2": False, "processes": 2},
    "deepspeed_zero3": {"type": "DEEPSPEED", "fsdp2": False, "processes": 2},
}


def marked(name: str) -> Any:
    marks = [one_gpu if name == "gpu" else two_gpus]
    if name.startswith("deepspeed"):
        marks.append(pytest.mark.skipif(not DEEPSPEED, reason="needs the package deepspeed"))
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", map(marked, SETUPS))
def test_a_launcher_file_gives_the_setup_it_names(name: str, tmp_path: Path) -> None:
    launch(name, HERE / "launched_setup.py", tmp_path / "setup.json")
    setup = json.loads((tmp_path / "setup.json").read_text(encoding="utf-8"))
    assert setup == SETUPS[name] | {"precision": "bf16", "device": "cuda"}


@pytest.mark.parametrize("name", [marked(name) for name in SETUPS if name != "gpu"])
def test_two_gpus_train_and_save_what_one_does(
    name: str, tmp_path: Path, exact_bert: Path, reviews: Path
) -> None:
    settings = (
        RECIPES / "bert_sentiment.py", "--dataset", reviews, "--model", exact_bert, "--run-id", "a",
        "--train.learning-rate", "0.005", "--train.epochs", "3", "--train.log-every", "1",
        "--train.eval-batch-size", "16",
    )  # fmt: skip
    launch("gpu", *settings, "--train.batch-size", "24", "--output-dir", tmp_path / "1",
           precision="no")  # fmt: skip
    launch(name, *settings, "--train.batch-size", "6", "--train.accumulation-steps", "2",
           "--output-dir", tmp_path / "2", precision="no")  # fmt: skip
    one, two = (tmp_path / number / "bert_sentiment" / "a" for number in ("1", "2"))
    logs = [
        [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
        for run in (one, two)
    ]
    for theirs, ours in zip(*logs, strict=True):
        if "loss" in theirs:
            assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-3)
            assert ours["learning_rate"] == theirs["learning_rate"]
        else:
            assert ours["validation"]["loss"] == pytest.approx(
                theirs["validation"]["loss"], abs=1e-2
            )
    summaries = [json.loads((run / "summary.json").read_text("utf-8")) for run in (one, two)]
    assert [summary["environment"]["processes"] for summary in summaries] == [1, 2]
    assert summaries[0]["model"] == summaries[1]["model"]
    weights = [load_file(run / "model" / "model.safetensors") for run in (one, two)]
    assert {key: tensor.shape for key, tensor in weights[0].items()} == {
        key: tensor.shape for key, tensor in weights[1].items()
    }
    _, loading = transformers.BertForSequenceClassification.from_pretrained(
        two / "model", output_loading_info=True
    )
    assert not loading["missing_keys"]


@two_gpus
def test_a_divided_language_model_writes_and_keeps_its_tied_weights(tmp_path: Path) -> None:
    launch(
        "fsdp2", RECIPES / "gpt2_generation.py", "--dataset", "demo:reviews", "--train-size", "100",
        "--validation-size", "17", "--test-size", "15", "--method", "from_scratch",
        "--shape.layers", "1", "--shape.hidden-size", "16", "--shape.heads", "2",
        "--shape.vocabulary", "300", "--block-size", "32", "--samples.prompts", '["房间"]',
        "--train.max-steps", "4", "--run-id", "a", "--output-dir", tmp_path,
    )  # fmt: skip
    run = tmp_path / "gpt2_generation" / "a"
    model = transformers.GPT2LMHeadModel.from_pretrained(run / "model")
    assert model.lm_head.weight is model.transformer.wte.weight
    assert model.dtype == torch.float32
    assert '"samples"' in (run / "metrics.jsonl").read_text(encoding="utf-8")


@one_gpu
@pytest.mark.skipif(
    torch.cuda.is_available() and torch.cuda.get_device_capability() < (8, 9),
    reason="needs a GPU of compute capability 8.9",
)
@pytest.mark.skipif(importlib.util.find_spec("torchao") is None, reason="needs the package torchao")
def test_fp8_trains(tmp_path: Path, reviews: Path) -> None:
    """torchao computes in fp8 where sizes are multiples of 16."""
    launch(
        "gpu", RECIPES / "bert_sentiment.py", "--dataset", reviews, "--method", "from_scratch",
        "--shape.layers", "1", "--shape.hidden-size", "64", "--shape.heads", "2", "--run-id", "a",
        "--train.max-steps", "4", "--train.mixed-precision", "fp8", "--output-dir", tmp_path,
    )  # fmt: skip
    run = tmp_path / "bert_sentiment" / "a"
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert summary["environment"]["precision"] == "fp8"
    model = transformers.BertForSequenceClassification.from_pretrained(run / "model")
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())
