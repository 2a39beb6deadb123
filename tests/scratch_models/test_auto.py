"""The Auto classes build our models between enable() and disable(), and at no other time."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest
from transformers import AutoModel, BertModel

import scratch_models
from scratch_models import (
    ScratchBertForMaskedLM,
    ScratchBertModel,
    disable,
    enable,
    scratch_class,
)


def test_auto_classes_change_only_on_request(tiny_config) -> None:
    config = tiny_config()
    assert type(AutoModel.from_config(config)) is BertModel
    enable()
    try:
        enable()  # twice is no error
        assert type(AutoModel.from_config(config)) is ScratchBertModel
    finally:
        disable()
    assert type(AutoModel.from_config(config)) is BertModel
    disable()  # twice is no error


def test_classes_are_found_by_architecture_and_head() -> None:
    assert scratch_class("bert") is ScratchBertModel
    assert scratch_class("bert", "masked-lm") is ScratchBertForMaskedLM
    with pytest.raises(ValueError, match="no from-scratch model of type 'llama': there are bert"):
        scratch_class("llama")
    with pytest.raises(ValueError, match="'scratch_lstm' model for 'masked-lm': it has sequence"):
        scratch_class("scratch_lstm", "masked-lm")


def test_every_public_name_can_be_imported() -> None:
    names = dir(scratch_models)
    assert {"ScratchBertModel", "ScratchLSTMConfig", "MultiHeadAttention"} <= set(names)
    for name in names:
        assert getattr(scratch_models, name).__name__ == name
    with pytest.raises(AttributeError, match="ScratchNothing"):
        _ = scratch_models.ScratchNothing


def test_every_public_class_is_exported() -> None:
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(scratch_models.__path__, "scratch_models.")
    ]
    classes = {
        name: value
        for module in modules
        for name, value in inspect.getmembers(module, inspect.isclass)
        if value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert {"MultiHeadAttention", "ScratchBertModel", "ParityReport"} <= classes.keys()
    assert classes.keys() <= set(dir(scratch_models))
    for name, value in classes.items():
        assert getattr(scratch_models, name) is value


def test_a_model_is_printed_under_its_own_name(tiny_config) -> None:
    printed = repr(ScratchBertForMaskedLM(tiny_config()))
    assert printed.startswith("ScratchBertForMaskedLM(\n  (bert): ScratchBertModel(")
