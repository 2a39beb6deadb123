"""Parity that cannot fail proves nothing: every planted fault is found."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from scratch_models import ScratchBertForPreTraining
from scratch_models.layers.stack import pre_norm
from scratch_models.models.bert import modeling
from scratch_models.parity import (
    ParityReport,
    ParityRow,
    check_checkpoint,
    compare_computing,
    compare_saving,
)
from scratch_models.parity.inputs import example_batches


def wrong_gelu(model: ScratchBertForPreTraining) -> None:
    """The tanh approximation for the exact one: outputs move by 1e-4 only."""
    for layer in model.bert.layers:
        layer.feed_forward.activation = nn.GELU(approximate="tanh")


def wrong_eps_in_one_norm(model: ScratchBertForPreTraining) -> None:
    model.bert.layers[1].attention_norm.eps = 1e-5


def wrong_eps_in_the_head(model: ScratchBertForPreTraining) -> None:
    model.masked_lm_head.norm.eps = 1e-3


def wrong_scale(model: ScratchBertForPreTraining) -> None:
    model.bert.layers[0].attention.scale *= 1.001


def transposed_weight(model: ScratchBertForPreTraining) -> None:
    weight = model.bert.layers[1].attention.value.weight
    weight.data = weight.data.T.contiguous()


def swapped_query_and_key(model: ScratchBertForPreTraining) -> None:
    attention = model.bert.layers[0].attention
    attention.query, attention.key = attention.key, attention.query


def pre_norm_for_post_norm(model: ScratchBertForPreTraining) -> None:
    model.bert.layers[1].residual = pre_norm


def forgotten_mask(model: ScratchBertForPreTraining) -> None:
    layer = model.bert.layers[1]
    attend = layer.attention.attend
    layer.attention.attend = lambda q, k, v, mask, **kwargs: attend(q, k, v, None, **kwargs)


def forgotten_segments(model: ScratchBertForPreTraining) -> None:
    model.bert.embeddings.segment.weight.data[1] = model.bert.embeddings.segment.weight.data[0]


def shifted_positions(model: ScratchBertForPreTraining) -> None:
    table = model.bert.embeddings.position.weight
    table.data = table.data.roll(1, dims=0)


def untied_head(model: ScratchBertForPreTraining) -> None:
    decoder = model.masked_lm_head.decoder
    decoder.weight = nn.Parameter(decoder.weight.detach().clone())


def no_dropout_on_attention(model: ScratchBertForPreTraining) -> None:
    for layer in model.bert.layers:
        layer.attention.dropout = 0.0


def detached_layer(model: ScratchBertForPreTraining) -> None:
    """Right values, wrong gradient."""
    model.bert.layers[0].register_forward_hook(lambda module, args, output: output.detach())


def gradient_twice_as_large(model: ScratchBertForPreTraining) -> None:
    model.bert.pooler.dense.weight.register_hook(lambda gradient: gradient * 2)


FAULTS: dict[Callable[[ScratchBertForPreTraining], None], str] = {
    wrong_gelu: "hidden states",
    wrong_eps_in_one_norm: "hidden states",
    wrong_eps_in_the_head: "outputs",
    wrong_scale: "hidden states",
    transposed_weight: "hidden states",
    swapped_query_and_key: "attention maps",
    pre_norm_for_post_norm: "hidden states",
    forgotten_mask: "hidden states",
    forgotten_segments: "hidden states",
    shifted_positions: "hidden states",
    untied_head: "gradients",
    no_dropout_on_attention: "after 10 SGD steps",
    detached_layer: "gradients",
    gradient_twice_as_large: "gradients",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_found_where_it_shows(fault, tiny_config, tiny_pair) -> None:
    # With weights this large an epsilon shows only if the right one is large.
    config = tiny_config(hidden_act="gelu", layer_norm_eps=0.1)
    scratch, reference = tiny_pair(config, "pretraining")
    fault(scratch)
    rows = compare_computing(scratch, reference, example_batches(config, "pretraining"))
    missed = {row.stage for row in rows if not row.passed}
    assert FAULTS[fault] in missed


@pytest.mark.parametrize(
    "changes", [{"hidden_act": "gelu_new"}, {"layer_norm_eps": 1e-5}, {"hidden_act": "relu"}]
)
def test_a_model_built_with_another_config_fails(changes, tiny_config, tiny_pair) -> None:
    config = tiny_config()
    _, reference = tiny_pair(config, "pretraining")
    scratch = ScratchBertForPreTraining(tiny_config(**changes)).eval()
    scratch.load_state_dict(reference.state_dict())
    rows = compare_computing(scratch, reference, example_batches(config, "pretraining"))
    assert not all(row.passed for row in rows)


def test_a_save_that_differs_in_one_bit_name_or_setting_fails(tiny_config, tiny_pair) -> None:
    def failing(change: Callable) -> set[str]:
        scratch, reference = tiny_pair(tiny_config())
        change(scratch)
        return {
            row.name.split(" (")[0] for row in compare_saving(scratch, reference) if not row.passed
        }

    def one_bit(model) -> None:
        bias = model.pooler.dense.bias
        bias.data[3] = torch.nextafter(bias.data[3], torch.tensor(math.inf))

    def half(model) -> None:
        model.half()

    def renamed(model) -> None:
        model.pooler.linear = model.pooler.dense
        del model.pooler.dense

    def other_setting(model) -> None:
        model.config.hidden_act = "relu"

    assert failing(lambda model: None) == set()
    assert failing(one_bit) == {"weights not equal in bits"}
    assert failing(half) == {"weights not equal in bits", "config.json entries"}
    assert failing(renamed) == {"names only one writes"}
    assert failing(other_setting) == {"config.json entries"}


def failures_of_a_changed_layer(
    change: Callable[[nn.Module], object], folder, tiny_pair, tiny_config, monkeypatch
) -> set[tuple[str, str]]:
    """The rows that fail for a checkpoint of HuggingFace's read into layers with a change."""
    _, reference = tiny_pair(tiny_config(), "masked-lm")
    reference.save_pretrained(folder)
    build_layer = modeling.build_layer

    def build_changed_layer(config):
        layer = build_layer(config)
        change(layer)
        return layer

    assert check_checkpoint(folder).passed
    monkeypatch.setattr(modeling, "build_layer", build_changed_layer)
    return {(row.stage, row.name.split(" (")[0]) for row in check_checkpoint(folder).failures}


def test_one_module_too_many_fails(tmp_path, tiny_pair, tiny_config, monkeypatch) -> None:
    """The checkpoint holds no weights for it, and HuggingFace's model has none to copy."""
    missed = failures_of_a_changed_layer(
        lambda layer: layer.add_module("gate", nn.Linear(2, 2)),
        tmp_path,
        tiny_pair,
        tiny_config,
        monkeypatch,
    )
    assert ("loading", "found by one side only") in missed
    assert ("loading", "held by one side only") in missed
    assert ("saving", "names only one writes") in missed
    assert ("after 10 SGD steps", "bert.layers.0.gate.weight") in missed
    assert not any(stage in ("hidden states", "outputs", "gradients") for stage, _ in missed)


def test_one_module_too_few_fails(tmp_path, tiny_pair, tiny_config, monkeypatch) -> None:
    def without_bias(layer: nn.Module) -> None:
        layer.attention.query.bias = None

    missed = failures_of_a_changed_layer(
        without_bias, tmp_path, tiny_pair, tiny_config, monkeypatch
    )
    assert ("loading", "held by one side only") in missed
    assert ("hidden states", "layer 1") in missed


def test_one_layer_too_many_fails(tiny_config, tiny_pair) -> None:
    scratch, reference = tiny_pair(tiny_config(), "pretraining")
    scratch.bert.layers.append(modeling.build_layer(scratch.config).eval())
    rows = compare_computing(scratch, reference, example_batches(tiny_config(), "pretraining"))
    missed = {(row.stage, row.name) for row in rows if not row.passed}
    assert {("hidden states", "layer 3"), ("attention maps", "layer 3")} <= missed


def test_not_a_number_and_infinity_fail_and_reports_without_rows_do_not_pass() -> None:
    assert not ParityRow("s", "n", math.nan, 1.0).passed
    assert not ParityRow("s", "n", math.inf, 1.0).passed
    assert not ParityRow("s", "n", math.inf, math.inf).passed  # the reference overflowed, ours not
    assert ParityRow("s", "n", 1e-6, 1e-5).passed
    report = ParityReport("m", "S", "H", "sdpa", 1)
    assert not report.passed
    report.rows.append(ParityRow("s", "n", math.inf, 1.0))
    assert report.to_dict()["rows"][0]["difference"] is None
    assert report.to_dict()["passed"] is False


def test_a_model_that_computes_nan_fails(tiny_config, tiny_pair) -> None:
    config = tiny_config()
    scratch, reference = tiny_pair(config, "pretraining")
    scratch.bert.pooler.dense.bias.data[0] = math.nan
    rows = compare_computing(scratch, reference, example_batches(config, "pretraining"))
    assert any(row.stage == "outputs" and not row.passed for row in rows)
