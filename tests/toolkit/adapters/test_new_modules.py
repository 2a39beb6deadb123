"""Models with modules that no checkpoint has filled: trained whole, saved, and read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import BertForSequenceClassification

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


def test_settings_are_checked(bert: str) -> None:
    with pytest.raises(UserError, match=r"it has .*query"):
        adapted(bert, targets=["q_proj"])
    with pytest.raises(UserError, match=r"--lora\.rank 0"):
        adapted(bert, rank=0)


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_adapter_on_huggingfaces_class_and_merged_model_agree(
    bert: str, tmp_path: Path, implementation: str, trained, run
) -> None:
    names = (
        ["query", "value", "output", "up"] if implementation == "scratch" else ["query", "dense"]
    )
    model = trained(adapted(bert, implementation, targets=names))
    batch = {"input_ids": torch.tensor([[2, 7, 9, 3], [2, 8, 3, 0]])}
    batch["attention_mask"] = (batch["input_ids"] > 0).long()
    with torch.no_grad():
        expected = model(**batch).logits
        save_adapter(run, model, load_tokenizer(bert))
        merged = merge(model).eval()
        assert torch.allclose(merged(**batch).logits, expected, atol=1e-5)
        merged.save_pretrained(tmp_path / "merged")  # type: ignore[operator]
        base = BertForSequenceClassification.from_pretrained(bert)
        again = PeftModel.from_pretrained(base, str(tmp_path / "adapter")).eval()
        assert torch.allclose(again(**batch).logits, expected, atol=1e-5)
        plain = BertForSequenceClassification.from_pretrained(tmp_path / "merged").eval()
        assert torch.allclose(plain(**batch).logits, expected, atol=1e-5)
