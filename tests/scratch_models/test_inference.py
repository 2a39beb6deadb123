"""Reordered weights change the speed and nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from transformers import BertConfig, GPT2Config, ViTConfig

from scratch_models import inference, optimize_for_inference, scratch_class
from scratch_models.inference import FusedFeedForward, PrepackedLinear, operators_work

SIZES: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "initializer_range": 0.3,
}  # fmt: skip

pytestmark = pytest.mark.skipif(not operators_work(), reason="this PyTorch has no such operators")


def build(kind: str) -> tuple[Any, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    ids = torch.randint(5, 50, (3, 7))
    if kind == "gpt2":
        config = GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3)
        return scratch_class("gpt2", "causal-lm")(config).eval(), {"input_ids": ids}
    if kind == "vit":
        images = torch.randn(2, 3, 16, 16)
        vit = ViTConfig(**SIZES, image_size=16, patch_size=4)
        return scratch_class("vit", "image-classification")(vit).eval(), {"pixel_values": images}
    bert = BertConfig(**SIZES, vocab_size=50, hidden_act=kind)
    mask = (torch.arange(7)[None] < torch.tensor([7, 2, 4])[:, None]).long()
    model = scratch_class("bert", "sequence-classification")(bert).eval()
    return model, {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("kind", ["gelu", "gelu_new", "relu", "silu", "gpt2", "vit"])
def test_the_outputs_stay(kind: str) -> None:
    model, batch = build(kind)
    with torch.no_grad():
        expected = model(**batch).logits
        found = optimize_for_inference(model)(**batch).logits
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert any(isinstance(m, PrepackedLinear) and m._packed is not None for m in model.modules())
    fused = any(isinstance(m, FusedFeedForward) for m in model.modules())
    assert fused == (kind != "silu")


def test_generation_gives_the_same_ids() -> None:
    model, batch = build("gpt2")
    expected = model.generate(**batch, max_new_tokens=8, do_sample=False, pad_token_id=0)
    optimize_for_inference(model)
    assert torch.equal(
        model.generate(**batch, max_new_tokens=8, do_sample=False, pad_token_id=0), expected
    )


def test_it_can_still_be_trained_and_then_predicts_with_the_new_weights() -> None:
    model, batch = build("gelu")
    plain = copy.deepcopy(model)
    optimize_for_inference(model)
    with torch.no_grad():
        model(**batch)  # reorders the weights
    labels = torch.tensor([0, 1, 0])
    for one in (plain, model):
        optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
        one(**batch, labels=labels).loss.backward()
        optimizer.step()
    with torch.no_grad():
        torch.testing.assert_close(model(**batch).logits, plain(**batch).logits)


def test_it_is_saved_loaded_and_copied_as_ever(tmp_path: Any) -> None:
    model, batch = build("gelu")
    with torch.no_grad():
        expected = optimize_for_inference(model)(**batch).logits
        model.save_pretrained(tmp_path)
        loaded = type(model).from_pretrained(tmp_path).eval()
        torch.testing.assert_close(loaded(**batch).logits, expected)
        torch.testing.assert_close(copy.deepcopy(model)(**batch).logits, expected)
        halved = copy.deepcopy(model).to(torch.bfloat16)
        assert halved(**batch).logits.dtype == torch.bfloat16
        model.load_state_dict({n: t * 0 for n, t in model.state_dict().items()})
        assert not model(**batch).logits.any()


def test_autocast_is_respected() -> None:
    model, batch = build("gelu")
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        expected = model(**batch).logits
        assert torch.equal(optimize_for_inference(model)(**batch).logits, expected)


def test_without_the_operators_nothing_changes(
    monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    class Missing:
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(name)

    monkeypatch.setattr(torch.ops, "mkldnn", Missing(), raising=False)
    operators_work.cache_clear()
    try:
        model, batch = build("gelu")
        with torch.no_grad():
            expected = model(**batch).logits
            assert torch.equal(optimize_for_inference(model)(**batch).logits, expected)
        assert not any(isinstance(m, PrepackedLinear) for m in model.modules())
        assert "stays as it is" in caplog.text
    finally:
        inference.operators_work.cache_clear()


def test_a_layer_of_another_class_is_left_alone() -> None:
    class Special(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return super().forward(input) + 1

    model = nn.Sequential(Special(4, 4), nn.Linear(4, 4))
    optimize_for_inference(model)
    assert [type(layer) for layer in model] == [Special, PrepackedLinear]
