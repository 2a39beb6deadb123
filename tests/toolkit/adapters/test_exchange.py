"""Adapters of HuggingFace's classes on ours, and ours on HuggingFace's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model

from toolkit.adapters import load_adapter, save_adapter
from toolkit.adapters.targets import modules_to_train, task_type

METHODS = {"lora": {}, "rslora": {"use_rslora": True}, "dora": {"use_dora": True}}

THEIR_TARGETS = {
    "bert": ["query", "key", "attention.output.dense", "intermediate.dense"],
    "roberta": ["query", "value"],
    "gpt2": ["c_attn", "c_proj", "c_fc"],
    "vit": ["q_proj", "v_proj", "o_proj", "fc1"],
    "marian": ["q_proj", "v_proj", "out_proj", "fc2"],
}
OUR_TARGETS = ["query", "value", "output", "up"]


def adapt(model: Any, **settings: Any) -> Any:
    config = LoraConfig(
        task_type=task_type(model), modules_to_save=modules_to_train(model, []), **settings
    )
    return get_peft_model(model, config)


def assert_equal(actual: torch.Tensor, expected: torch.Tensor) -> None:
    scale = expected.abs().max().clamp(min=1)
    torch.testing.assert_close(actual / scale, expected / scale, atol=1e-5, rtol=0)


@pytest.mark.parametrize("method", METHODS)
def test_theirs_on_ours(
    kind: tuple[str, str], method: str, load, trained, outputs, tmp_path: Path, capsys
) -> None:
    torch.manual_seed(0)
    model = adapt(
        load(*kind, "hf"),
        target_modules=THEIR_TARGETS[kind[0]],
        rank_pattern={r"(layer|layers|h)\.1\..*": 3},
        alpha_pattern={r"(layer|layers|h)\.0\..*(query|q_proj|c_attn|c_fc)": 5},
        r=4,
        lora_alpha=6,
        **METHODS[method],
    )
    before = outputs(model)
    expected = outputs(trained(model))
    assert (expected - before).abs().max() > 0.1
    model.save_pretrained(tmp_path)
    ours = load_adapter(load(*kind), tmp_path)
    assert_equal(outputs(ours), expected)
    assert f"in the layout of {type(model.get_base_model()).__name__}" in capsys.readouterr().err


@pytest.mark.parametrize("method", METHODS)
def test_ours_on_theirs_and_back(
    kind: tuple[str, str], method: str, load, trained, outputs, run, tokenizer, capsys
) -> None:
    torch.manual_seed(0)
    model = adapt(
        load(*kind),
        target_modules=OUR_TARGETS,
        rank_pattern={"value": 3, "1.attention.query": 5},
        alpha_pattern={"query": 5},
        r=4,
        lora_alpha=6,
        **METHODS[method],
    )
    expected = outputs(trained(model))
    save_adapter(run, model, tokenizer)
    folder = run.directory / "adapter"
    assert (folder / "tokenizer.json").exists()
    theirs = PeftModel.from_pretrained(load(*kind, "hf"), folder)
    assert_equal(outputs(theirs), expected)
    said = capsys.readouterr().err
    assert f"an adapter for {type(theirs.get_base_model()).__name__}" in said
    assert_equal(outputs(load_adapter(load(*kind), folder)), expected)
    if kind[0] != "gpt2":  # one layer of theirs is one of ours: plain peft manages
        assert_equal(outputs(PeftModel.from_pretrained(load(*kind), folder)), expected)
