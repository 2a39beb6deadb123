"""Pushed to a Hub and loaded from it again, in processes that know nothing of this package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

TOKEN = "hf_loopbackTokenOfTheTestsNoSecret1"
TEXT = "房间很好"
# What a reader of the card does: load the model by its name, then run the lines of the card.
LOAD = """
import json, re, sys
from huggingface_hub import hf_hub_download
from transformers import AutoTokenizer
name, text, kind = sys.argv[1:]
if kind == "peft":
    from peft import AutoPeftModelForSequenceClassification as Auto
else:
    from transformers import AutoModelForSequenceClassification as Auto
import torch
tokenizer = AutoTokenizer.from_pretrained(name)
model = Auto.from_pretrained(name).eval()
with torch.no_grad():
    logits = model(**tokenizer(text, return_tensors="pt")).logits[0].tolist()
card = open(hf_hub_download(name, "README.md"), encoding="utf-8").read()
[lines] = re.findall(r"```python\\n(.*?)```", card, flags=re.DOTALL)
exec(lines, {})
assert not any(module.startswith(("toolkit", "scratch_models")) for module in sys.modules)
labels = [model.config.id2label[place] for place in range(len(logits))]
print(json.dumps({"logits": logits, "labels": labels, "card": card}))
"""


@pytest.fixture
def variables(hub: Any, tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who uses this Hub, with an empty cache."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {
        **kept, "HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HOME": str(tmp_path / "cache"),
        "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "OMP_NUM_THREADS": "1",
        "ACCELERATE_USE_CPU": "true", "PYTHONUTF8": "1",
    }  # fmt: skip


def load_back(
    name: str, variables: dict[str, str], tmp_path: Path, kind: str = "transformers"
) -> dict[str, Any]:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOAD, name, TEXT, kind], env=variables, cwd=elsewhere,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def logits_of(folder: Path) -> torch.Tensor:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        logits: torch.Tensor = model(**tokenizer(TEXT, return_tensors="pt")).logits[0]
    return logits


@pytest.mark.slow
def test_what_was_pushed_loads_from_there(
    hub: Any,
    copied_model: None,
    make_run: Callable[..., Path],
    toolkit_command: Callable[..., tuple[int, str, str]],
    variables: dict[str, str],
    tmp_path: Path,
) -> None:
    run = make_run()
    assert toolkit_command("push", run, "lin/reviews", "--private")[0] == 0
    found = load_back("lin/reviews", variables, tmp_path)
    torch.testing.assert_close(torch.tensor(found["logits"]), logits_of(run / "model"))
    assert found["labels"] == ["负面", "正面"]
    assert yaml.safe_load(found["card"].split("---\n")[1])["language"] == "zh"
    assert hub.seen("GET", "/cdn/") >= 1  # the weights came from there


@pytest.mark.slow
@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_recipe_trains_pushes_and_its_model_loads_back(
    hub: Any,
    write_tiny_bert: Callable[..., Path],
    write_reviews: Callable[..., Path],
    variables: dict[str, str],
    repository: Path,
    tmp_path: Path,
    method: str,
) -> None:
    """From a base model on the Hub; its adapter is pushed as one and names it."""
    base = write_tiny_bert(tmp_path / "base", "BertModel")
    hub.add("lab/base", {file.name: file.read_bytes() for file in base.iterdir()}
            | {"README.md": b"---\nlicense: mit\n---\n"})  # fmt: skip
    reviews = write_reviews(tmp_path / "评论 #1.csv", 60)
    command = [
        sys.executable, str(repository / "recipes" / "bert_sentiment.py"), "--dataset",
        str(reviews), "--model", "lab/base", "--implementation", "hf", "--run-id", "a",
        "--train.max-steps", "3", "--train.batch-size", "8", "--method", method,
        "--push-to-hub", "lin/reviews", "--private",
    ]  # fmt: skip
    done = subprocess.run(
        command, env={**variables, "PYTHONPATH": str(repository)}, cwd=tmp_path,
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Pushed and checked" in done.stdout
    assert TOKEN not in done.stdout + done.stderr
    assert hub.repositories["lin/reviews"].private
    files = hub.files("lin/reviews")
    assert ("adapter_model.safetensors" in files) == (method == "lora")
    found = load_back(
        "lin/reviews", variables, tmp_path, "peft" if method == "lora" else "transformers"
    )
    merged = tmp_path / "results" / "runs" / "bert_sentiment" / "a" / "model"
    torch.testing.assert_close(
        torch.tensor(found["logits"]), logits_of(merged), atol=1e-4, rtol=1e-4
    )
    # In the order of their code points. peft takes the base model's config, not the adapter's.
    names = json.loads(files["config.json"])["id2label"]
    assert names == {"0": "正面", "1": "负面"}
    assert method == "lora" or found["labels"] == list(names.values())
    metadata = yaml.safe_load(found["card"].split("---\n")[1])
    assert metadata["base_model"] == "lab/base"
    assert metadata["base_model_relation"] == ("adapter" if method == "lora" else "finetune")
    assert metadata["license"] == "mit"  # of the base model's card on this Hub
    assert str(tmp_path) not in found["card"]
