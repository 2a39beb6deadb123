"""Adapters (peft): default targets, saving, merging, and those trained on HuggingFace's class."""

from __future__ import annotations

import copy

import pytest
import torch
import transformers
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from torch import nn
from transformers import BertForMaskedLM, BertForSequenceClassification, BertModel, GPT2Config

from scratch_models import (
    ScratchBertForMaskedLM,
    ScratchBertForSequenceClassification,
    ScratchBertModel,
    scratch_class,
)
from scratch_models.hub.adapters import Adapter, to_huggingface
from scratch_models.hub.architecture import architectures
from scratch_models.hub.module_names import covering_modules, shortest_names
from scratch_models.hub.spellings import places, spellings


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


def heads_with_a_counterpart() -> list[tuple[str, str]]:
    return [
        (model_type, head)
        for model_type, architecture in architectures().items()
        for head in architecture.classes
        if architecture.load(head).huggingface_class
    ]


@pytest.mark.parametrize(("model_type", "head"), heads_with_a_counterpart())
def test_places_are_the_names_of_huggingface_s_class(model_type: str, head: str) -> None:
    own_class = scratch_class(model_type, head)
    config = own_class.config_class(**architectures()[model_type].part("parity_grid").TINY)
    with torch.device("meta"):
        ours = own_class(copy.deepcopy(config))
        theirs = getattr(transformers, own_class.huggingface_class)(copy.deepcopy(config))
    found = places(ours)
    assert {place.name for place in found.values()} == set(theirs.state_dict())
    known = spellings(ours)
    for name, place in found.items():
        assert known[place.name][place.part] == name
        assert len(known[place.name]) == place.parts


def test_names_that_pick_layers() -> None:
    modules = {"a", "a.0", "a.0.x", "a.0.y", "a.1", "a.1.x", "b", "b.x"}
    assert shortest_names({"a.0.y"}, modules) == ["y"]
    assert shortest_names({"a.0.x", "a.1.x"}, modules) == ["0.x", "1.x"]
    assert shortest_names({"a.0.x", "a.1.x", "b.x"}, modules) == ["x"]
    assert shortest_names({"a.0.y"}, modules, ({"other.y"}, ())) == ["0.y"]
    assert shortest_names({"a.0.y"}, modules, ({"other.y"}, {"other.y"})) == ["y"]


def test_modules_under_another_name() -> None:
    renamed = {"head.p.w": "top.w", "head.q.w": "top.q.w", "body.x.w": "stem.w", "body.v": "v"}
    assert covering_modules(["head", "x", "absent"], renamed) == ["absent", "stem", "top"]
    assert covering_modules(None, renamed) is None
    with pytest.raises(ValueError, match=r"body .*is no one module"):
        covering_modules(["body"], renamed)


def test_parts_of_other_sizes_share_one_scaling() -> None:
    """GPT-2's query and value with ranks 2 and 3 and their own alpha, by hand."""
    model = scratch_class("gpt2", "model")(GPT2Config(n_embd=4, n_head=1, n_layer=1, vocab_size=5))
    place = "layers.0.attention"
    weights = {
        f"{place}.{layer}.lora_{matrix}.weight": torch.randn(shape)
        for layer, rank in (("query", 2), ("value", 3))
        for matrix, shape in (("A", (rank, 4)), ("B", (4, rank)))
    }
    settings = {"lora_alpha": 6, "alpha_pattern": {"query": 5}, "use_rslora": False}
    adapter = to_huggingface(model, Adapter(settings, weights))
    assert (adapter.settings["r"], adapter.settings["target_modules"]) == (5, ["c_attn"])
    b, a = (adapter.weights[f"h.0.attn.c_attn.lora_{matrix}.weight"] for matrix in "BA")
    update = b @ a * adapter.settings["lora_alpha"] / 5
    for rows, layer, scaling in ((slice(0, 4), "query", 5 / 2), (slice(8, 12), "value", 6 / 3)):
        expected = (
            weights[f"{place}.{layer}.lora_B.weight"] @ weights[f"{place}.{layer}.lora_A.weight"]
        )
        torch.testing.assert_close(update[rows], expected * scaling)
    assert update[4:8].count_nonzero() == 0
    with pytest.raises(ValueError, match="has no layer other"):
        to_huggingface(model, Adapter(settings, {"other.lora_A.weight": torch.ones(1, 1)}))
