"""A merged model is the adapted one, in every precision and layout."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import GPT2Config

from scratch_models import ScratchGPT2LMHeadModel
from toolkit.adapters import LoraSettings, add_lora, merge
from toolkit.errors import UserError

ALL_LAYERS = {
    "scratch": ["query", "value", "output", "up", "down"],
    "hf": ["query", "value", "q_proj", "v_proj", "dense", "fc1", "c_attn", "c_proj", "c_fc"],
}


ROUNDING = 3e-6
"""Of the outputs in float32; adapted models themselves are up to 2e-6 from float64's outputs."""


def merged_by_hand(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """W + alpha / rank B A in float64; the transpose for GPT-2's Conv1D, [inputs, outputs]."""
    for name, layer in model.named_modules():
        if hasattr(layer, "lora_A"):
            weight = layer.base_layer.weight.detach().double()
            b, a = layer.lora_B["default"].weight.double(), layer.lora_A["default"].weight.double()
            update = 16 / 8 * b.detach() @ a.detach()
            is_conv = type(layer.base_layer).__name__ == "Conv1D"
            yield f"{name}.weight", weight + (update.T if is_conv else update)


def relative(actual: torch.Tensor, expected: torch.Tensor) -> float:
    return ((actual - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("dora", [False, True], ids=["lora", "dora"])
@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_merged_unmerged_and_saved(
    architecture: str,
    implementation: str,
    dora: bool,
    heads,
    load,
    trained,
    outputs,
    tmp_path: Path,
) -> None:
    kind = (architecture, heads[architecture][0])
    model = load(*kind, implementation)
    before = outputs(model)
    targets = ALL_LAYERS[implementation]
    model = trained(add_lora(model, LoraSettings(targets=targets), [], dora=dora))
    expected = outputs(model)
    assert relative(expected, before) > 0.01
    model.merge_adapter()
    assert relative(outputs(model), expected) < ROUNDING
    model.unmerge_adapter()
    assert relative(outputs(model), expected) < ROUNDING
    weights = {} if dora else dict(merged_by_hand(model.get_base_model()))
    plain = merge(model)
    assert not any("lora" in name for name, _ in plain.named_modules())
    for name, weight in weights.items():
        assert relative(plain.get_parameter(name).double(), weight) < 1e-7, name
    assert relative(outputs(plain), expected) < ROUNDING
    plain.save_pretrained(tmp_path)  # type: ignore[operator]
    theirs = type(load(*kind, "hf")).from_pretrained(tmp_path).eval()
    assert relative(outputs(theirs), expected) < ROUNDING


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_half_precision_is_rounded_once(dtype: torch.dtype, load, trained, capsys) -> None:
    model = load("gpt2", "sequence-classification", dtype=dtype)
    weight = model.transformer.layers[0].attention.query.weight.detach().float()
    model = trained(add_lora(model, LoraSettings(rank=4, alpha=6.0), []))
    layer = model.get_base_model().transformer.layers[0].attention.query
    update = layer.lora_B["default"].weight @ layer.lora_A["default"].weight * 1.5
    example = {"input_ids": torch.randint(2, 53, (2, 7))}
    with torch.no_grad():
        expected = model(**example).logits.float()
    capsys.readouterr()
    merged: Any = merge(model, example)
    actual = merged.transformer.layers[0].attention.query.weight
    assert torch.equal(actual, (weight + update).to(dtype))
    assert {p.dtype for p in merged.parameters()} == {dtype}
    said = re.search(r"differ by (\S+) at most, of up to (\S+)$", capsys.readouterr().err.strip())
    assert said is not None
    with torch.no_grad():
        difference = (merged(**example).logits.float() - expected).abs().max().item()
    assert said[1] == f"{difference:.1e}"
    assert 0 < difference < 0.1 * expected.abs().max()


@pytest.mark.parametrize("dora", [False, True], ids=["lora", "dora"])
def test_an_untrained_adapter_is_told(dora: bool, load, trained, capsys) -> None:
    merge(add_lora(load("vit", "image-classification"), LoraSettings(), [], dora=dora))
    warning = "warning: the adapter changes none of the 4 layers it is on"
    assert warning in capsys.readouterr().err
    merge(trained(add_lora(load("vit", "image-classification"), LoraSettings(), [], dora=dora)))
    assert "warning" not in capsys.readouterr().err


def test_a_plain_module_is_merged() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    adapted = get_peft_model(net, LoraConfig(target_modules=["0"], init_lora_weights=False)).eval()
    inputs = torch.randn(5, 3)
    expected = adapted(inputs)
    torch.testing.assert_close(merge(adapted)(inputs), expected)


def test_an_update_of_a_tied_weight_is_not_merged() -> None:
    """It was of the embedding alone; in the weight it would change the output layer too."""
    config = GPT2Config(vocab_size=31, n_positions=16, n_embd=8, n_layer=1, n_head=2)
    lora = LoraConfig(r=2, target_modules=["token", "query"], init_lora_weights=False)
    model = get_peft_model(ScratchGPT2LMHeadModel(config), lora)
    with pytest.raises(UserError, match=r"transformer\.token\.weight|lm_head\.weight"):
        merge(model)
    untied = GPT2Config(**{**config.to_dict(), "tie_word_embeddings": False})
    model = get_peft_model(ScratchGPT2LMHeadModel(untied), lora).eval()
    ids = torch.randint(31, (2, 5))
    expected = model(ids).logits
    torch.testing.assert_close(merge(model)(ids).logits, expected, atol=1e-5, rtol=1e-5)
