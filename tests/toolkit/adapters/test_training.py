"""Which layers are adapted, what is trained, and that gradients reach it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn

from scratch_models import ScratchLSTMConfig, ScratchLSTMForSequenceClassification
from toolkit.adapters import LoraSettings, add_lora
from toolkit.adapters.training import count_adapted
from toolkit.errors import UserError
from toolkit.modeling import count_parameters

WIDTH = 16
THEIRS = {  # names, and outputs of a layer
    "gpt2": (["c_attn"], 3 * WIDTH),
    "vit": (["q_proj", "v_proj"], WIDTH),
    "marian": (["q_proj", "v_proj"], WIDTH),
}
ATTENTIONS = {"marian": 4}  # two encoder layers, one decoder layer that has two; else two layers


@pytest.mark.parametrize("dora", [False, True], ids=["lora", "dora"])
@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_every_query_and_value_is_adapted_and_counted(
    architecture: str, implementation: str, dora: bool, heads, load, outputs, capsys
) -> None:
    model = load(architecture, heads[architecture][0], implementation)
    before = outputs(model)
    adapted = add_lora(model, LoraSettings(rank=3), [], dora=dora)
    names, size = ["query", "value"], WIDTH
    if implementation == "hf":
        names, size = THEIRS.get(architecture, (names, size))
    layers = ATTENTIONS.get(architecture, 2) * len(names)
    updates = sum(p.numel() for name, p in adapted.named_parameters() if ".lora_" in name)
    assert updates == layers * (3 * WIDTH + 3 * size + (size if dora else 0))
    trained, _ = adapted.get_nb_trainable_parameters()
    assert trained == count_parameters(adapted)["parameters_trained"]
    assert (
        f"{'DoRA' if dora else 'LoRA'} on {layers} of {layers} layers {', '.join(names)}: "
        f"{trained:,} parameters are trained" in capsys.readouterr().err
    )
    torch.testing.assert_close(outputs(adapted.eval()), before, atol=1e-5, rtol=0)


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
@pytest.mark.parametrize(
    ("model_type", "head", "task", "trained_whole"),
    [
        ("bert", "model", "FEATURE_EXTRACTION", set()),
        ("bert", "masked-lm", None, set()),
        ("bert", "sequence-classification", "SEQ_CLS", {"classifier"}),
        ("bert", "token-classification", "TOKEN_CLS", {"classifier"}),
        ("bert", "question-answering", "QUESTION_ANS", {"qa_outputs"}),
        ("gpt2", "causal-lm", "CAUSAL_LM", set()),
        ("gpt2", "sequence-classification", "SEQ_CLS", {"score"}),
        ("marian", "seq2seq-lm", "SEQ_2_SEQ_LM", set()),
        ("vit", "image-classification", None, {"classifier"}),
        ("vit", "model", None, set()),
    ],
)
def test_task_and_head(
    model_type: str,
    head: str,
    task: str | None,
    trained_whole: set[str],
    implementation: str,
    load,
) -> None:
    adapted = add_lora(load(model_type, head, implementation), LoraSettings(), [])
    config = adapted.peft_config["default"]
    assert config.task_type == task
    whole = {n.split(".")[-4] for n, p in adapted.named_parameters() if "modules_to_save" in n}
    assert whole == trained_whole
    assert len(config.modules_to_save or []) == len(set(config.modules_to_save or []))


def test_bert_by_peft_s_own_default(load) -> None:
    assert count_adapted(get_peft_model(load("bert", "masked-lm"), LoraConfig())) == 4


def test_key_has_huggingface_s_name_too(load, capsys) -> None:
    settings = LoraSettings(targets=["key", "fc1"])
    assert count_adapted(add_lora(load("vit", "model", "hf"), settings, [])) == 4
    assert "4 of 4 layers k_proj, fc1" in capsys.readouterr().err


def test_names_of_no_layer(load, capsys) -> None:
    with pytest.raises(UserError, match=r"no such linear layers; it has .*down.*query.*up"):
        add_lora(load("gpt2", "causal-lm"), LoraSettings(targets=["c_attn"]), [])
    blocks = nn.ModuleDict({"up": nn.Linear(2, 2), "block": nn.ModuleDict({"up": nn.ReLU()})})
    with pytest.raises(UserError, match=r"--lora\.targets \['up'\]: .*ReLU.* is not supported"):
        add_lora(blocks, LoraSettings(targets=["up"]), [])
    capsys.readouterr()
    adapted = add_lora(load("vit", "model"), LoraSettings(targets=["value", "FAKE"]), [])
    assert count_adapted(adapted) == 2
    assert "no layer is called FAKE; left out" in capsys.readouterr().err


def test_a_plain_module(capsys) -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    adapted = add_lora(net, LoraSettings(rank=1, targets=["0"]), ["2"])
    assert adapted.peft_config["default"].task_type is None
    assert sum(p.numel() for p in adapted.parameters() if p.requires_grad) == 3 + 4 + 4 * 2 + 2
    assert adapted(torch.ones(1, 3)).shape == (1, 2)
    assert "LoRA on 1 of 1 layers 0: 17 parameters are trained" in capsys.readouterr().err


def test_a_model_without_queries_names_its_layers() -> None:
    model = ScratchLSTMForSequenceClassification(ScratchLSTMConfig(vocab_size=9))
    with pytest.raises(UserError, match=r"it has classifier\."):
        add_lora(model, LoraSettings(), [])


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
def test_gradients_pass_frozen_embeddings_and_checkpoints(
    architecture: str, implementation: str, load, heads, outputs, trained
) -> None:
    def gradients(**checkpointing: Any) -> dict[str, Any]:
        torch.manual_seed(0)
        model = load(architecture, heads[architecture][0], implementation)
        if checkpointing:
            model.activation_checkpointing_enable(checkpointing)
        adapted = trained(add_lora(model, LoraSettings(), [])).train()
        torch.manual_seed(0)  # of dropout
        outputs(adapted, grad=True).square().mean().backward()
        return {name: p.grad for name, p in adapted.named_parameters() if p.requires_grad}

    expected = gradients()
    assert all(gradient.abs().max() > 0 for gradient in expected.values())
    for reentrant in (False, True):
        for name, gradient in gradients(use_reentrant=reentrant).items():
            torch.testing.assert_close(gradient, expected[name], msg=name)
