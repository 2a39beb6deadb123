"""The Auto classes give our models between enable() and disable(), for every head."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoConfig, AutoModel, BertConfig
from transformers.models.auto import modeling_auto

from scratch_models import disable, enable, scratch_class


@pytest.fixture
def enabled() -> Iterator[None]:
    enable()
    yield
    disable()


def test_from_config_and_from_pretrained_give_our_class(case, enabled, tmp_path) -> None:
    model = case.auto_class.from_config(case.config())
    assert type(model) is case.own_class
    model.save_pretrained(tmp_path)
    config = AutoConfig.from_pretrained(tmp_path)
    assert type(config) is case.own_class.config_class
    loaded, info = case.auto_class.from_pretrained(tmp_path, output_loading_info=True)
    assert type(loaded) is case.own_class
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


def test_without_enable_huggingface_s_class_reads_what_we_saved(twin, tmp_path) -> None:
    twin.fresh().save_pretrained(tmp_path)
    _, info = twin.auto_class.from_pretrained(tmp_path, output_loading_info=True)
    assert type(twin.auto_class.from_config(twin.config())) is twin.reference_class
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]


def test_what_others_registered_comes_back(tiny_config) -> None:
    class TheirBert(scratch_class("bert")):  # type: ignore[misc]
        pass

    tables = AutoModel._model_mapping._extra_content
    AutoModel.register(BertConfig, TheirBert, exist_ok=True)
    try:
        enable()
        assert type(AutoModel.from_config(tiny_config())) is scratch_class("bert")
        disable()
        assert tables[BertConfig] is TheirBert
    finally:
        tables.pop(BertConfig)
    assert "scratch_lstm" not in CONFIG_MAPPING


def tables() -> dict[str, object]:
    """Everything transformers knows about which class belongs to what."""
    found: dict[str, object] = {"configs": dict(CONFIG_MAPPING._extra_content)}
    for name, value in vars(modeling_auto).items():
        if name.endswith("_MAPPING_NAMES"):
            found[name] = dict(value)
        elif name.endswith("_MAPPING"):
            found[name] = (dict(value._model_mapping), dict(value._extra_content))
    return found


def test_disable_leaves_nothing_behind() -> None:
    """All our classes have been imported and used by then: none is in the tables."""
    before = tables()
    assert "Scratch" not in str(before)
    enable()
    try:
        assert "Scratch" in str(tables())
    finally:
        disable()
    assert tables() == before


UNTOUCHED = """
import transformers
from transformers import CONFIG_MAPPING, pipeline
from transformers.models.auto import modeling_auto
from transformers.pipelines import PIPELINE_REGISTRY

def tables():
    found = {"configs": (dict(CONFIG_MAPPING._mapping), dict(CONFIG_MAPPING._extra_content))}
    for name, value in vars(modeling_auto).items():
        if name.endswith("_MAPPING_NAMES"):
            found[name] = dict(value)
        elif name.endswith("_MAPPING"):
            found[name] = (dict(value._model_mapping), dict(value._extra_content))
    found["tasks"] = {
        task: [model.__name__ for model in entry["pt"]]
        for task, entry in PIPELINE_REGISTRY.supported_tasks.items()
    }
    return found

before = tables()
import scratch_models
from scratch_models.hub.architecture import architectures
for architecture in architectures().values():
    for head in architecture.classes:
        architecture.load(head)
config = transformers.BertConfig(
    vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
)
tokenizer = transformers.BertTokenizer(vocab={"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3})
model = scratch_models.ScratchBertForSequenceClassification(config)
pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu")("a")
assert tables() == before, "importing and using our classes changed transformers' tables"
"""


@pytest.mark.slow
def test_importing_and_using_our_classes_changes_nothing_global() -> None:
    subprocess.run([sys.executable, "-c", UNTOUCHED], check=True)
