"""Adapters (peft): default targets, saving, merging, and those trained on HuggingFace's class."""

from __future__ import annotations

import copy

import pytest
import torch
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from torch import nn
from transformers import BertForMaskedLM, BertForSequenceClassification, BertModel

from scratch_models import (
    ScratchBertForMaskedLM,
    ScratchBertForSequenceClassification,
    ScratchBertModel,
)


def adapted_layers(model: nn.Module) -> int:
    return sum(name.endswith("lora_A") for name, _ in model.named_modules())


def test_default_targets_are_found_saved_loaded_and_merged(tiny_config, tmp_path) -> None:
    base = ScratchBertForMaskedLM(tiny_config()).eval()
    base.save_pretrained(tmp_path / "base")
    adapted = get_peft_model(copy.deepcopy(base), LoraConfig(r=4, init_lora_weights=False)).eval()
    assert adapted_layers(adapted) == 4  # query and value of two layers
    ids = torch.randint(61, (2, 6))
    expected = adapted(ids).logits
    assert not torch.allclose(expected, base(ids).logits, atol=1e-3)
    adapted.save_pretrained(tmp_path / "adapter")
    again = ScratchBertForMaskedLM.from_pretrained(tmp_path / "base")
    again = PeftModel.from_pretrained(again, tmp_path / "adapter").eval()
    torch.testing.assert_close(again(ids).logits, expected)
    adapted.merge_and_unload().save_pretrained(tmp_path / "merged")
    merged = BertForMaskedLM.from_pretrained(tmp_path / "merged")
    torch.testing.assert_close(merged(ids).logits, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("own_class", "reference_class", "task"),
    [
        (ScratchBertModel, BertModel, None),
        (
            ScratchBertForSequenceClassification,
            BertForSequenceClassification,
            TaskType.SEQ_CLS,
        ),
    ],
)
def test_adapters_trained_on_huggingface_s_class_load_into_ours(
    own_class, reference_class, task, tiny_config, tmp_path
) -> None:
    reference = reference_class(tiny_config()).eval()
    reference.save_pretrained(tmp_path / "base")
    lora = LoraConfig(
        r=4, task_type=task, target_modules=["query", "key", "value"], init_lora_weights=False
    )
    adapted = get_peft_model(reference, lora).eval()
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "classifier" in name:
                parameter.normal_()
    adapted.save_pretrained(tmp_path / "adapter")
    ours = PeftModel.from_pretrained(
        own_class.from_pretrained(tmp_path / "base"), tmp_path / "adapter"
    ).eval()
    assert adapted_layers(ours) == 6
    ids = torch.randint(61, (2, 6))
    with torch.no_grad():
        torch.testing.assert_close(ours(ids)[0], adapted(ids)[0], atol=1e-5, rtol=0)
