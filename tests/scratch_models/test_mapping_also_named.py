"""Second spellings in a name table: read wherever they stand, written where they were read."""

from __future__ import annotations

import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedConfig

from scratch_models import ScratchPreTrainedModel
from scratch_models.hub.mapping import (
    adapter_key_mapping,
    also_named,
    register_names,
    rename,
    to_own_names,
)


class SpelledConfig(PreTrainedConfig):
    model_type = "scratch_spelled"


class SpelledPreTrainedModel(ScratchPreTrainedModel):
    config_class = SpelledConfig
    base_model_prefix = "body"


class SpelledModel(SpelledPreTrainedModel):
    def __init__(self, config: SpelledConfig) -> None:
        super().__init__(config)
        self.layers = nn.ModuleList(
            nn.ModuleDict({"up": nn.Linear(2, 3), "up_more": nn.Linear(2, 3)}) for _ in range(12)
        )
        self.norm = nn.LayerNorm(2)
        self.post_init()


class SpelledHead(SpelledPreTrainedModel):
    def __init__(self, config: SpelledConfig) -> None:
        super().__init__(config)
        self.body = SpelledModel(config)
        self.head = nn.Linear(2, 2)
        self.post_init()


register_names(
    "SpelledModel",
    [
        # Stated first on purpose: the order of the rows means nothing.
        also_named("layers.*.fc1", "layers.*.up"),
        also_named("block.*.lin", "layers.*.up"),
        rename("encoder.layer.*.dense", "layers.*.up"),
        rename("encoder.layer.*.dense_more", "layers.*.up_more"),
        also_named("layers.*.fc1_more", "layers.*.up_more"),
        rename("final_norm", "norm"),
    ],
    base_model_prefix="body",
)

HUB = {"up": "encoder.layer.{}.dense", "up_more": "encoder.layer.{}.dense_more"}
SPELLINGS = {
    "hub": HUB,
    "second": {"up": "layers.{}.fc1", "up_more": "layers.{}.fc1_more"},
    "third": {**HUB, "up": "block.{}.lin"},
}


def stored(spelling: str, prefix: str) -> dict[str, Tensor]:
    """The weights of a checkpoint in one spelling, each different from all others."""
    names = SPELLINGS[spelling]
    state = {
        f"{prefix}{name.format(layer)}.{kind}": torch.randn(3, 2) if kind == "weight" else None
        for layer in range(12)
        for name in names.values()
        for kind in ("weight", "bias")
    }
    state = {name: torch.randn(3) if t is None else t for name, t in state.items()}
    return state | {f"{prefix}final_norm.{kind}": torch.randn(2) for kind in ("weight", "bias")}


def write(state: dict[str, Tensor], folder) -> None:
    folder.mkdir()
    SpelledConfig().save_pretrained(folder)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


def assert_holds(model: SpelledModel, state: dict[str, Tensor], spelling: str, prefix: str) -> None:
    for layer, modules in enumerate(model.layers):
        for own, name in SPELLINGS[spelling].items():
            for kind, tensor in modules[own].named_parameters():
                assert torch.equal(tensor, state[f"{prefix}{name.format(layer)}.{kind}"])
    assert torch.equal(model.norm.bias, state[f"{prefix}final_norm.bias"])


def assert_same(state: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], expected[name]) for name in state)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("prefix", ["", "body."])
def test_a_checkpoint_is_read_and_written_back_in_its_spelling(
    prefix: str, spelling: str, tmp_path
) -> None:
    state = stored(spelling, prefix)
    write(state, tmp_path / "stored")
    body, info = SpelledModel.from_pretrained(tmp_path / "stored", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert_holds(body, state, spelling, prefix)
    body.save_pretrained(tmp_path / "body")
    assert_same(
        load_file(tmp_path / "body" / "model.safetensors"),
        {name.removeprefix(prefix): tensor for name, tensor in state.items()},
    )


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("prefix", ["", "body."])
def test_a_head_on_a_body_writes_the_body_in_the_spelling_it_was_read_in(
    prefix: str, spelling: str, tmp_path
) -> None:
    state = stored(spelling, prefix)
    write(state, tmp_path / "stored")
    head, info = SpelledHead.from_pretrained(tmp_path / "stored", output_loading_info=True)
    assert info["missing_keys"] == {"head.weight", "head.bias"}
    assert_holds(head.body, state, spelling, prefix)
    for generation in ("1", "2"):
        head.save_pretrained(tmp_path / generation)
        expected = {f"body.{n.removeprefix(prefix)}": tensor for n, tensor in state.items()}
        expected |= {"head.weight": head.head.weight, "head.bias": head.head.bias}
        assert_same(load_file(tmp_path / generation / "model.safetensors"), expected)
        head = SpelledHead.from_pretrained(tmp_path / generation)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_plain_state_dict_is_read_in_every_spelling_and_written_in_the_hub_s(
    spelling: str, tmp_path
) -> None:
    state = stored(spelling, "")
    body = SpelledModel(SpelledConfig())
    body.load_state_dict(state)
    assert_holds(body, state, spelling, "")
    body.save_pretrained(tmp_path)
    assert load_file(tmp_path / "model.safetensors").keys() == stored("hub", "").keys()


def test_a_fresh_model_is_written_in_the_hub_s_spelling(tmp_path) -> None:
    SpelledHead(SpelledConfig()).save_pretrained(tmp_path)
    names = load_file(tmp_path / "model.safetensors").keys()
    assert names == {*stored("hub", "body."), "head.weight", "head.bias"}


def test_what_another_checkpoint_was_read_in_is_forgotten(tmp_path) -> None:
    """The table of a class is shared by its models; what was read by one is not."""
    write(stored("second", ""), tmp_path / "second")
    write(stored("hub", ""), tmp_path / "hub")
    second = SpelledModel.from_pretrained(tmp_path / "second")
    hub = SpelledModel.from_pretrained(tmp_path / "hub")
    for name, model in (("a", hub), ("b", second), ("c", SpelledModel(SpelledConfig()))):
        model.save_pretrained(tmp_path / name)
    spelled = [load_file(tmp_path / name / "model.safetensors").keys() for name in "abc"]
    assert spelled == [stored(s, "").keys() for s in ("hub", "second", "hub")]


def test_unknown_names_stay_as_they_are_for_the_caller_to_report() -> None:
    body = SpelledModel(SpelledConfig())
    unknown = {"layers.0.fc12.weight": torch.zeros(1), "layers.x.fc1.weight": torch.zeros(1)}
    assert to_own_names(body, unknown).keys() == unknown.keys()


def test_adapters_are_read_in_every_spelling() -> None:
    patterns = adapter_key_mapping(SpelledModel(SpelledConfig()))
    for name in (*SPELLINGS["second"].values(), *SPELLINGS["third"].values()):
        path = f"base_model.model.body.{name.format(11)}.lora_A.weight"
        own = "up_more" if name.endswith("more") else "up"
        assert one_of(patterns, path) == [f"base_model.model.body.layers.11.{own}.lora_A.weight"]


def one_of(patterns: dict[str, str], path: str) -> list[str]:
    """What the patterns that match make of a path."""
    return [re.sub(old, new, path) for old, new in patterns.items() if re.search(old, path)]
