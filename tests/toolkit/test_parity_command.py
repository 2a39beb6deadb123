"""`toolkit parity`: the table, the verdict, the exit code and the errors a user can make."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch import nn
from transformers import BertConfig, BertForMaskedLM, BertModel, GPT2Config, OPTConfig

from scratch_models import (
    ScratchBertForMaskedLM,
    ScratchLSTMConfig,
    ScratchLSTMForSequenceClassification,
)
from scratch_models.hub.architecture import HEADS, architectures
from scratch_models.layers.stack import EncoderLayer
from scratch_models.parity import (
    check_checkpoint,
    checkpoint_head,
    compare_gradients,
    example_batches,
    read_config,
)
from scratch_models.parity.grid import (
    compared_heads,
    most_complete_head,
    write_random_checkpoint,
)
from toolkit.commands import parity
from toolkit.console import console
from toolkit.errors import UserError


@pytest.fixture(autouse=True)
def one_thread_one_seed() -> Iterator[None]:
    """Tiny tensors: handing them to a second thread costs ten times what it saves."""
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def folder(tmp_path) -> Path:
    """A tiny masked language model of HuggingFace's."""
    config = BertConfig(
        vocab_size=61,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=24,
        initializer_range=0.3,
    )
    BertForMaskedLM(config).save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


def run(*arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    parity.configure(parser)
    return parity.run(parser.parse_args([str(argument) for argument in arguments]))


def test_heads_offered_are_the_heads_there_are() -> None:
    parser = argparse.ArgumentParser()
    parity.configure(parser)
    offered = next(action.choices for action in parser._actions if action.dest == "head")
    assert set(offered) == set(HEADS)


def test_attentions_offered_are_those_that_take_every_mask() -> None:
    from scratch_models.layers.masks import MASK_TENSOR_IMPLEMENTATIONS

    assert parity._ATTENTIONS == MASK_TENSOR_IMPLEMENTATIONS


def test_layers_stand_in_their_order_in_the_table() -> None:
    config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=12, num_attention_heads=2)
    models = [cls._from_config(config) for cls in (ScratchBertForMaskedLM, BertForMaskedLM)]
    models[0].load_state_dict(models[1].state_dict())
    rows = compare_gradients(*models, example_batches(config, "masked-lm"))
    layers = [part for _, part in parity._lines(rows) if part.startswith("layer ")]
    assert layers == [f"layer {number}" for number in range(1, 13)]


@pytest.mark.parametrize("attn", ["sdpa", "eager", "scratch"])
def test_equal_models_exit_0_and_every_row_is_written(folder, attn, tmp_path, capsys) -> None:
    report_file = tmp_path / "report.json"
    assert run(folder, "--attn", attn, "--json", report_file) == 0
    printed = capsys.readouterr().out
    assert "ScratchBertForMaskedLM and BertForMaskedLM" in printed
    assert "attention maps: layer 2" in printed
    assert printed.rstrip().splitlines()[-1].startswith("equal: all ")
    assert "NO" not in printed
    report = json.loads(report_file.read_text())
    assert report["passed"] is True
    assert report["attn_implementation"] == attn
    assert report["parameters"] == BertForMaskedLM.from_pretrained(folder).num_parameters()
    names = {row["name"] for row in report["rows"] if row["stage"] == "gradients"}
    assert len(names) == len(list(BertForMaskedLM.from_pretrained(folder).parameters()))
    assert all(row["difference"] <= row["tolerance"] for row in report["rows"])


MODELS = [(a.model_type, head) for a in architectures().values() for head in compared_heads(a)]


@pytest.mark.parametrize(("model_type", "head"), MODELS)
def test_the_head_is_the_one_huggingface_saved(model_type, head, tmp_path) -> None:
    write_random_checkpoint(tmp_path, architectures()[model_type], head)
    assert checkpoint_head(read_config(tmp_path)) == head


def test_a_head_we_have_not_is_compared_by_its_body() -> None:
    assert checkpoint_head(GPT2Config(architectures=["GPT2DoubleHeadsModel"])) == "model"


@pytest.mark.parametrize("model_type", ["gpt2", "vit", "marian", "resnet"])
def test_folders_of_every_architecture(model_type, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(console, "width", 100)
    architecture = architectures()[model_type]
    head = most_complete_head(architecture)
    write_random_checkpoint(tmp_path / "tiny", architecture, head)
    assert run(tmp_path / "tiny", "--json", tmp_path / "report.json") == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["scratch_class"] == architecture.classes[head]
    assert report["weights"] == "checkpoint"
    assert report["largest_difference"]["gradients"] < 1e-5
    *table, _, _ = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 100 for line in table)
    lines = [line.split("│")[1].strip() for line in table if line.count("│") > 4]
    expected = {
        "gpt2": {
            "hidden states: layer 2",
            "gradients: layer 2",
            "generation: beams",
            "cache: layer 2",
        },
        "vit": {"attention maps: layer 2", "gradients: layer 2", "gradients: outside the layers"},
        "marian": {"hidden states: encoder layer 2", "gradients: decoder layer 1"}
        | {"attention maps: cross layer 2", "generation: greedy, static cache"},
        "resnet": {"hidden states: layer 3", "gradients: stage 3", "half precision: float16"},
    }
    assert expected[model_type] <= set(lines)
    assert len(lines) == len(set(lines)) < 60


def test_the_head_can_be_chosen_and_what_was_missing_is_named(folder, capsys) -> None:
    assert run(folder, "--head", "sequence-classification") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "ScratchBertForSequenceClassification" in printed
    assert "not in the checkpoint" in printed
    assert "classifier.weight" in printed


def wrong_gelu(layer: EncoderLayer) -> None:
    layer.feed_forward.activation = nn.GELU(approximate="tanh")


def wrong_eps(layer: EncoderLayer) -> None:
    layer.attention_norm.eps = 1e-3


@pytest.mark.parametrize("fault", [wrong_gelu, wrong_eps])
def test_a_wrong_gelu_or_eps_exits_1_and_names_what_is_off(
    fault: Callable[[EncoderLayer], None], folder, tmp_path, capsys, monkeypatch
) -> None:
    from scratch_models.models.bert import modeling

    def build_wrong_layer(config: BertConfig) -> EncoderLayer:
        layer = build_layer(config)
        fault(layer)
        return layer

    build_layer = modeling.build_layer
    monkeypatch.setattr(modeling, "build_layer", build_wrong_layer)
    report_file = tmp_path / "report.json"
    assert run(folder, "--json", report_file) == 1
    printed = capsys.readouterr().out
    assert "NOT equal: " in printed.splitlines()[-1]
    report = json.loads(report_file.read_text())
    assert report["passed"] is False
    first_layer = [r for r in report["rows"] if r["stage"] == "hidden states"]
    assert [row["passed"] for row in first_layer] == [True, False, False]


def break_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def remove_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def remove_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def cut_weights_short(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])


def empty_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"")


def foreign_weights(folder: Path) -> None:
    weights = {"h.0.attn.weight": torch.zeros(3)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def wrong_size(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 50}))


def other_architecture(folder: Path) -> None:
    config = OPTConfig(vocab_size=9, hidden_size=8, ffn_dim=8, num_hidden_layers=1)
    config.save_pretrained(folder)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (break_config, "config.json cannot be read"),
        (remove_config, "no config.json"),
        (remove_weights, "weights cannot be loaded"),
        (cut_weights_short, "weights cannot be loaded"),
        (empty_weights, "weights cannot be loaded"),
        (foreign_weights, "none of the weights"),
        (wrong_size, "weights cannot be loaded"),
        (other_architecture, "no from-scratch model of type 'opt'"),
    ],
)
def test_folders_that_cannot_be_compared_are_named(damage, message, folder) -> None:
    damage(folder)
    with pytest.raises(UserError, match=message) as error:
        run(folder)
    assert str(folder) in str(error.value)


def a_model_transformers_has_not(folder: Path) -> None:
    ScratchLSTMForSequenceClassification(ScratchLSTMConfig(vocab_size=9)).save_pretrained(folder)


def a_decoder(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"is_decoder": True}))


@pytest.mark.parametrize(
    ("change", "head", "message"),
    [
        (a_model_transformers_has_not, "sequence-classification", "no counterpart"),
        (a_decoder, "masked-lm", "is an encoder; the config has is_decoder"),
        (lambda folder: None, "causal-lm", "no from-scratch 'bert' model for 'causal-lm': it has"),
    ],
)
def test_models_that_cannot_be_compared_are_named(change, head, message, folder) -> None:
    change(folder)
    with pytest.raises(UserError, match=message) as error:
        run(folder, "--head", head)
    assert str(folder) in str(error.value)


def test_a_missing_folder_is_the_user_s_to_mend(tmp_path) -> None:
    with pytest.raises(UserError, match="nowhere"):
        run(tmp_path / "nowhere")


def test_a_json_file_that_cannot_be_written_is_named(folder, tmp_path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        run(folder, "--json", tmp_path / "no" / "such" / "folder.json")


def test_a_body_in_half_precision(tmp_path) -> None:
    config = BertConfig(vocab_size=61, hidden_size=32, num_hidden_layers=1, num_attention_heads=4)
    BertModel(config).half().save_pretrained(tmp_path / "half")
    assert run(tmp_path / "half") == 0


def test_a_roberta_with_few_positions_is_compared(tmp_path) -> None:
    config = transformers.RobertaConfig(
        vocab_size=31, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=8, max_position_embeddings=14,
    )  # fmt: skip
    transformers.RobertaForMaskedLM(config).save_pretrained(tmp_path)
    assert check_checkpoint(tmp_path).passed


def test_a_config_that_holds_no_settings_is_named(tmp_path) -> None:
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(UserError, match=r"config\.json cannot be read"):
        parity.load_both(str(tmp_path), None, "sdpa")
