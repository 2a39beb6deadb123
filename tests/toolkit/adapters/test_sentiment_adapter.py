"""LoRA: what is trained, what is saved, and that both implementations read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import BertForSequenceClassification

from scratch_models import ScratchBertForSequenceClassification
from toolkit.adapters import LoraSettings, add_lora, merge, save_adapter
from toolkit.errors import UserError
from toolkit.modeling import load_pretrained, load_tokenizer


@pytest.fixture
def bert(write_tiny_bert: Callable[..., Path], tmp_path: Path) -> str:
    return str(write_tiny_bert(tmp_path / "bert", head="BertForMaskedLM"))


def adapted(bert: str, implementation: str = "scratch", **settings: Any) -> Any:
    model, new = load_pretrained(bert, "sequence-classification", implementation=implementation)  # type: ignore[arg-type]
    return add_lora(model, LoraSettings(dropout=0.0, **settings), new)


def test_updates_and_new_modules_alone_are_trained(bert: str) -> None:
    model = adapted(bert, rank=3)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    updates = {name for name in trained if "lora_" in name}
    assert len(updates) == 2 * 2 * 2  # layers x (query, value) x (A, B)
    assert sum(p.numel() for n, p in model.named_parameters() if n in updates) == 8 * 3 * 16
    rest = {name.split("modules_to_save")[0].split(".")[-2] for name in trained - updates}
    assert rest == {"classifier", "pooler"}  # a masked language model had neither


def test_targets(bert: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"it has .*query"):
        adapted(bert, targets=["q_proj"])
    with pytest.raises(UserError, match=r"--lora\.rank 0"):
        adapted(bert, rank=0)
    capsys.readouterr()
    model = adapted(bert, targets=["query", "FAKE"])
    assert "no layer is called FAKE" in capsys.readouterr().err
    assert sum("lora_A" in name for name, _ in model.named_parameters()) == 2


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_adapter_on_huggingfaces_class_and_merged_model_agree(
    bert: str, tmp_path: Path, implementation: str
) -> None:
    names = (
        ["query", "value", "output", "up"] if implementation == "scratch" else ["query", "dense"]
    )
    torch.manual_seed(0)
    model = adapted(bert, implementation, targets=names)
    for parameter in model.parameters():
        if parameter.requires_grad:  # as if trained: B starts at 0 and would hide everything
            torch.nn.init.normal_(parameter, std=0.3)
    batch = {"input_ids": torch.tensor([[2, 7, 9, 3], [2, 8, 3, 0]])}
    batch["attention_mask"] = (batch["input_ids"] > 0).long()
    model.eval()
    with torch.no_grad():
        expected = model(**batch).logits
        run: Any = SimpleNamespace(
            directory=tmp_path, accelerator=SimpleNamespace(is_main_process=True)
        )
        save_adapter(run, model, load_tokenizer(bert))
        merged = merge(model).eval()
        assert torch.allclose(merged(**batch).logits, expected, atol=1e-5)
        merged.save_pretrained(tmp_path / "merged")
        base = BertForSequenceClassification.from_pretrained(bert)
        again = PeftModel.from_pretrained(base, str(tmp_path / "adapter")).eval()
        assert torch.allclose(again(**batch).logits, expected, atol=1e-5)
        plain = BertForSequenceClassification.from_pretrained(tmp_path / "merged").eval()
        assert torch.allclose(plain(**batch).logits, expected, atol=1e-5)


def test_an_adapter_on_the_default_layers_loads_into_our_class_too(
    bert: str, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = adapted(bert)
    for parameter in model.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.3)
    batch = {"input_ids": torch.tensor([[2, 7, 9, 3]]), "attention_mask": torch.ones(1, 4).long()}
    run: Any = SimpleNamespace(
        directory=tmp_path, accelerator=SimpleNamespace(is_main_process=True)
    )
    save_adapter(run, model, load_tokenizer(bert))
    with torch.no_grad():
        expected = model.eval()(**batch).logits
        for model_class in (BertForSequenceClassification, ScratchBertForSequenceClassification):
            base = model_class.from_pretrained(bert)
            again = PeftModel.from_pretrained(base, str(tmp_path / "adapter")).eval()
            assert torch.allclose(again(**batch).logits, expected, atol=1e-5), model_class
