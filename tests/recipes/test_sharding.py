"""Models that are divided among processes are saved as one: that which a single process saves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file

HERE = Path(__file__).parent
CLASSES = {
    "bert": transformers.BertForSequenceClassification,
    "bert_hf": transformers.BertForSequenceClassification,
    "bert_tied": transformers.BertForMaskedLM,
    "gpt2": transformers.GPT2LMHeadModel,
    "gpt2_hf": transformers.GPT2LMHeadModel,
    "bert_lora": transformers.BertForSequenceClassification,
    "gpt2_lora_hf": transformers.GPT2LMHeadModel,
    "translator": transformers.MarianMTModel,
    "vit": transformers.ViTForImageClassification,
}


@pytest.fixture(scope="module")
def saved(
    start_connected: Callable[..., list],
    join: Callable[..., list[int]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Folders `whole/<case>` and `divided/<case>`, as `divided_saving.py` writes them."""
    folder = tmp_path_factory.mktemp("saved")
    log = folder / "log"
    processes = start_connected(log, folder, recipe=str(HERE / "divided_saving"))
    assert join(processes, log) == [0, 0], log.read_text(encoding="utf-8")
    return folder


def hashes(folder: Path) -> dict[str, str]:
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file()
    }


@pytest.mark.parametrize("case", CLASSES)
def test_a_divided_model_is_saved_bit_for_bit_like_a_whole_one(saved: Path, case: str) -> None:
    whole, divided = (hashes(saved / place / case) for place in ("whole", "divided"))
    assert {"model/config.json", "model/model.safetensors"} <= set(whole)
    assert ("adapter/adapter_model.safetensors" in whole) == ("lora" in case)
    assert divided == whole


@pytest.mark.parametrize("case", CLASSES)
def test_it_loads_with_plain_transformers(saved: Path, case: str) -> None:
    folder = saved / "divided" / case / "model"
    model, loading = CLASSES[case].from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    stored, loaded = load_file(folder / "model.safetensors"), model.state_dict()
    assert all(tensor.equal(loaded[name]) for name, tensor in stored.items() if name in loaded)
    assert set(stored) & set(loaded)
    output = model.get_output_embeddings()
    if output is not None:  # tied, and stored once
        assert output.weight is model.get_input_embeddings().weight
        sizes = [tensor.shape for tensor in stored.values()]
        assert sizes.count(output.weight.shape) == 1


@pytest.mark.slow
def test_an_interrupted_run_of_divided_models_resumes_bit_for_bit(
    start_connected: Callable[..., list],
    join: Callable[..., list[int]],
    tmp_path: Path,
    tiny_bert: Path,
    reviews: Path,
) -> None:
    """With dropout. Process 1 fails in step 7; the checkpoint of step 5 is the newest."""
    settings = (
        "--dataset", reviews, "--model", tiny_bert, "--run-id", "a", "--train.batch-size", "3",
        "--train.max-steps", "9", "--train.evaluate-every", "5", "--train.learning-rate", "0.005",
    )  # fmt: skip
    recipe, failing = HERE.parents[1] / "recipes/bert_sentiment.py", HERE / "one_rank_fails.py"
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    commands = {
        "whole": (recipe, *settings, "--output-dir", whole),
        "broken": (failing, recipe, *settings, "--output-dir", broken),
        "resumed": (recipe, "--resume", broken / "bert_sentiment/a"),
    }
    for name, words in commands.items():
        log = tmp_path / f"{name}.log"
        codes = join(start_connected(log, *words, recipe=str(HERE / "fsdp2_on_cpu")), log)
        assert (codes == [0, 0]) == (name != "broken"), log.read_text(encoding="utf-8")
    assert "after step 5" in (tmp_path / "resumed.log").read_text(encoding="utf-8")
    ends = [load_file(place / "bert_sentiment/a/model/model.safetensors")
            for place in (whole, broken)]  # fmt: skip
    assert set(ends[0]) == set(ends[1])
    assert all(tensor.equal(ends[1][name]) for name, tensor in ends[0].items())
