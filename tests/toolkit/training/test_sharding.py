"""A plain copy of a divided or wrapped model: its structure, its names, its tied weights."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

from toolkit.modeling import count_parameters
from toolkit.training.sharding import _layer_classes, _plain_copy, gather_whole, is_divided

CONFIG = transformers.GPT2Config(vocab_size=31, n_embd=16, n_layer=2, n_head=2, n_positions=32)


def language_model() -> Any:
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(CONFIG)


def test_a_model_that_is_whole_is_left_alone() -> None:
    model = language_model()
    assert not is_divided(model)
    main: Any = SimpleNamespace(is_main_process=True)
    other: Any = SimpleNamespace(is_main_process=False)
    assert gather_whole(main, model) is model
    assert gather_whole(other, model) is None


def test_the_copy_has_the_weights_and_names_of_a_model_without_wrappers() -> None:
    model = language_model()
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    ids = torch.arange(10)[None]
    expected = model.eval()(ids).logits
    for number, layer in enumerate(model.transformer.h):
        model.transformer.h[number] = checkpoint_wrapper(layer)
    model.transformer.h[0].register_forward_pre_hook(lambda *_: None)
    copied = _plain_copy(model, weights)
    assert list(copied.state_dict()) == list(weights)
    assert all(tensor.equal(weights[name]) for name, tensor in copied.state_dict().items())
    assert type(copied.transformer.h[0]) is type(language_model().transformer.h[0])
    assert not copied.transformer.h[0]._forward_pre_hooks
    assert copied.lm_head.weight is copied.transformer.wte.weight
    assert not copied.training
    assert copied(ids).logits.equal(expected)
    with torch.no_grad():  # it is no other name for the divided model
        copied.lm_head.weight.zero_()
    assert model(ids).logits.equal(expected)


def test_weights_that_deepspeed_divides_are_gathered_by_its_engine() -> None:
    """By what its documentation says of parameters and engine; without the package itself."""
    model = language_model()
    whole = copy.deepcopy(model)
    weights = {name: tensor.clone() for name, tensor in whole.state_dict().items()}
    del weights["lm_head.weight"]  # tied: gathered once
    engine = object()
    for number, parameter in enumerate(model.parameters()):
        parameter.ds_id, parameter.ds_numel = number, parameter.numel()
        parameter.data = torch.empty(0)
    assert is_divided(model)
    assert count_parameters(model) == count_parameters(whole)

    def gather(asked: object) -> dict[str, torch.Tensor]:
        assert asked is engine
        return weights

    accelerator: Any = SimpleNamespace(
        is_main_process=True,
        deepspeed_engine_wrapped=SimpleNamespace(engine=engine),
        get_state_dict=gather,
    )
    gathered = gather_whole(accelerator, model)
    assert gathered.lm_head.weight is gathered.transformer.wte.weight
    for name, tensor in whole.state_dict().items():
        assert gathered.state_dict()[name].equal(tensor)
    other: Any = SimpleNamespace(
        is_main_process=False,
        deepspeed_engine_wrapped=accelerator.deepspeed_engine_wrapped,
        get_state_dict=lambda asked: None,
    )
    assert gather_whole(other, model) is None


def test_units_are_layers_whose_weights_are_used_nowhere_else() -> None:
    bert = transformers.BertConfig(vocab_size=31, hidden_size=16, num_hidden_layers=2,
                                   num_attention_heads=2, intermediate_size=24)  # fmt: skip
    untied = transformers.BertForSequenceClassification(bert)
    assert _layer_classes(untied) == ["BertEmbeddings", "BertLayer"]
    tied = transformers.BertForMaskedLM(bert)  # the output layer has the token embeddings
    assert _layer_classes(tied) == ["BertLayer"]
    assert _layer_classes(nn.Linear(2, 2)) == []
