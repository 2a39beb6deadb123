"""The words in which a model states its name table, each on a small model of its own."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import GPT2Config

from scratch_models.hub.base import ScratchPreTrainedModel
from scratch_models.hub.mapping import (
    Row,
    register_names,
    rename,
    to_own_names,
    transpose,
    transpose_and_split,
)


class Layer(nn.Module):
    """Layers whose names are beginnings and ends of each other, as real ones are."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(4, 4)
        self.key = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.query_norm = nn.LayerNorm(4)
        self.up = nn.Linear(4, 6)
        self.down = nn.Linear(6, 4)


class ToyPreTrainedModel(ScratchPreTrainedModel):
    config_class = GPT2Config
    base_model_prefix = "body"

    def _init_weights(self, module: nn.Module) -> None:
        for parameter in module.parameters(recurse=False):
            nn.init.normal_(parameter)


class ToyBody(ToyPreTrainedModel):
    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(5, 4)
        self.layers = nn.ModuleList([Layer() for _ in range(config.n_layer)])
        self.post_init()


class ToyHead(ToyPreTrainedModel):
    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.body = ToyBody(config)
        self.last_wte = nn.Linear(4, 3)  # ends like a name of the body's table
        self.post_init()


TABLE: list[Row] = [
    rename("wte", "embedding"),
    rename("h.*.ln", "layers.*.norm"),
    rename("h.*.ln_q", "layers.*.query_norm"),
    transpose_and_split("h.*.attn.c_attn", ["layers.*.query", "layers.*.key"]),
    transpose("h.*.mlp.c_fc", "layers.*.up"),
    transpose("h.*.mlp.c_proj", "layers.*.down"),
]


@pytest.fixture(autouse=True)
def toy_table() -> None:
    register_names("ToyBody", TABLE, base_model_prefix="body")


@pytest.fixture
def config() -> GPT2Config:
    return GPT2Config(n_layer=11)  # two digits: layer 1 must not be taken for layer 10


def as_stored(body: ToyBody, prefix: str = "") -> dict[str, Tensor]:
    """The weights of a body under the names and in the layout of `TABLE`, by hand."""
    stored = {"wte.weight": body.embedding.weight}
    for number, layer in enumerate(body.layers):
        h = f"h.{number}"
        stored |= {f"{h}.ln.{k}": v for k, v in layer.norm.state_dict().items()}
        stored |= {f"{h}.ln_q.{k}": v for k, v in layer.query_norm.state_dict().items()}
        weights = [layer.query.weight.T, layer.key.weight.T]
        stored[f"{h}.attn.c_attn.weight"] = torch.cat(weights, dim=1)
        stored[f"{h}.attn.c_attn.bias"] = torch.cat([layer.query.bias, layer.key.bias])
        for name, linear in {"c_fc": layer.up, "c_proj": layer.down}.items():
            stored[f"{h}.mlp.{name}.weight"] = linear.weight.T
            stored[f"{h}.mlp.{name}.bias"] = linear.bias
    return {prefix + key: tensor.detach().clone().contiguous() for key, tensor in stored.items()}


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        assert torch.equal(tensor, expected[name]), name


def write(folder, weights: dict[str, Tensor], config: GPT2Config) -> None:
    folder.mkdir()
    config.save_pretrained(folder)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_names_and_layouts_of_a_body_there_and_back(config, tmp_path) -> None:
    body = ToyBody(config)
    stored = as_stored(body)
    assert_same(to_own_names(body, stored), body.state_dict())
    write(tmp_path / "in", stored, config)
    loaded, info = ToyBody.from_pretrained(tmp_path / "in", output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert_same(loaded.state_dict(), body.state_dict())
    loaded.save_pretrained(tmp_path / "out")
    assert_same(load_file(tmp_path / "out/model.safetensors"), stored)


@pytest.mark.parametrize("prefix", ["body.", ""])
def test_a_body_s_weights_inside_a_head(prefix: str, config, tmp_path) -> None:
    model = ToyHead(config)
    stored = as_stored(model.body, prefix)
    stored |= {f"last_wte.{k}": v.clone() for k, v in model.last_wte.state_dict().items()}
    write(tmp_path / "in", stored, config)
    loaded, info = ToyHead.from_pretrained(tmp_path / "in", output_loading_info=True)
    assert not info["missing_keys"]
    assert_same(loaded.state_dict(), model.state_dict())
    assert_same(to_own_names(model, stored), model.state_dict())
    loaded.save_pretrained(tmp_path / "out")
    saved = load_file(tmp_path / "out/model.safetensors")
    expected = as_stored(model.body, "body.")
    assert_same({k: v for k, v in saved.items() if k in expected}, expected)
    assert saved.keys() - expected.keys() == {"last_wte.weight", "last_wte.bias"}


def test_a_head_s_weights_into_a_body(config, tmp_path) -> None:
    model = ToyHead(config)
    write(tmp_path / "in", as_stored(model.body, "body."), config)
    loaded, info = ToyBody.from_pretrained(tmp_path / "in", output_loading_info=True)
    assert not info["missing_keys"]
    assert_same(loaded.state_dict(), model.body.state_dict())
    loaded.save_pretrained(tmp_path / "out")
    assert_same(load_file(tmp_path / "out/model.safetensors"), as_stored(model.body))


def test_a_fresh_model_and_a_sharded_one_are_saved_in_stored_names(config, tmp_path) -> None:
    body = ToyBody(config)
    body.save_pretrained(tmp_path, max_shard_size="1KB")
    files = list(tmp_path.glob("*.safetensors"))
    assert len(files) > 2
    saved = {key: tensor for file in files for key, tensor in load_file(file).items()}
    assert_same(saved, as_stored(body))
    assert_same(ToyBody.from_pretrained(tmp_path).state_dict(), body.state_dict())


def test_rows_that_loading_had_no_use_for_are_undone_too(config, tmp_path) -> None:
    stored = as_stored(ToyBody(config))
    part = {key: tensor for key, tensor in stored.items() if "c_attn" not in key and ".ln" in key}
    write(tmp_path / "in", part, config)
    loaded = ToyHead.from_pretrained(tmp_path / "in")
    loaded.save_pretrained(tmp_path / "out")
    saved = load_file(tmp_path / "out/model.safetensors")
    expected = as_stored(loaded.body, "body.")
    assert_same({k: v for k, v in saved.items() if k in expected}, expected)


@pytest.mark.parametrize("own_names", [True, False])
def test_plain_state_dicts_in_either_names(own_names: bool, config) -> None:
    """transformers' Trainer restores checkpoints this way."""
    model, other = ToyHead(config), ToyHead(config)
    stored = as_stored(model.body, "body.")
    stored |= {f"last_wte.{k}": v.clone() for k, v in model.last_wte.state_dict().items()}
    result = other.load_state_dict(model.state_dict() if own_names else stored)
    assert not result.missing_keys
    assert not result.unexpected_keys
    assert_same(other.state_dict(), model.state_dict())


def test_what_only_changes_its_name_is_not_copied(config) -> None:
    body = ToyBody(config)
    stored = as_stored(body)
    own = to_own_names(body, stored)
    assert own["embedding.weight"] is stored["wte.weight"]
    assert own["layers.10.norm.bias"] is stored["h.10.ln.bias"]


def test_unknown_names_come_back_for_the_caller_to_report(config) -> None:
    body = ToyBody(config)
    own = to_own_names(body, {"h.0.attn.bias": torch.zeros(1), "other": torch.ones(1)})
    assert own.keys() == {"h.0.attn.bias", "other"}
    with pytest.raises(RuntimeError, match=r"Unexpected key.*other"):
        body.load_state_dict(as_stored(body) | {"other": torch.ones(1)})


def test_gradients_take_the_way_of_their_weights(config) -> None:
    body = ToyBody(config)
    gradients = {key: torch.randn_like(tensor) for key, tensor in as_stored(body).items()}
    own = to_own_names(body, gradients)
    fused = gradients["h.3.attn.c_attn.weight"]
    assert torch.equal(own["layers.3.query.weight"], fused[:, :4].T)
    assert torch.equal(own["layers.3.key.weight"], fused[:, 4:].T)


def test_one_weight_is_not_split_over_several_layers() -> None:
    rows = [transpose_and_split("h.*.c_attn", ["layers.*.query", "blocks.*.key"])]
    with pytest.raises(ValueError, match=r"h\.\*\.c_attn is split over several layers"):
        register_names("ToyBody", rows)
