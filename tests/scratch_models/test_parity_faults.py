"""Parity that cannot fail proves nothing: every planted fault is found."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from scratch_models import ScratchBertForPreTraining, ScratchPreTrainedModel
from scratch_models.hub.architecture import architectures
from scratch_models.layers.attention import MultiHeadAttention
from scratch_models.layers.cached_attention import CausalSelfAttention
from scratch_models.layers.feed_forward import FeedForward
from scratch_models.layers.stack import pre_norm
from scratch_models.models.bert import modeling
from scratch_models.parity import (
    ParityReport,
    ParityRow,
    check_checkpoint,
    compare_computing,
    compare_saving,
    example_batches,
    load_pair,
)
from scratch_models.parity.grid import write_random_checkpoint


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


def parts(model: nn.Module, kind: type[nn.Module]) -> list:
    return [module for module in model.modules() if isinstance(module, kind)]


def another_activation(model: ScratchPreTrainedModel) -> None:
    parts(model, FeedForward)[-1].activation = nn.GELU(approximate="none")


def the_tanh_gelu(model: ScratchPreTrainedModel) -> None:
    parts(model, FeedForward)[-1].activation = nn.GELU(approximate="tanh")


def another_eps(model: ScratchPreTrainedModel) -> None:
    parts(model, nn.LayerNorm)[1].eps = 1e-3


def another_scale(model: ScratchPreTrainedModel) -> None:
    parts(model, MultiHeadAttention)[-1].scale *= 1.001


def one_key_of_the_future(model: ScratchPreTrainedModel) -> None:
    attention = parts(model, CausalSelfAttention)[0]
    attend = attention.attend

    def attend_to_one_more(query, key, value, mask, **kwargs):
        if mask is None:
            mask = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool).tril()[None, None]
        return attend(query, key, value, mask | mask.roll(-1, dims=-2), **kwargs)

    attention.attend = attend_to_one_more


def positions_one_further(model: ScratchPreTrainedModel) -> None:
    table = next(m for name, m in model.named_modules() if name.endswith("position")).weight
    table.data = table.data.roll(1, dims=0)


def patches_one_further(model: ScratchPreTrainedModel) -> None:
    position = model.vit.embeddings.position
    position.data = position.data.roll(1, dims=1)


def transposed_query(model: ScratchPreTrainedModel) -> None:
    weight = parts(model, MultiHeadAttention)[-1].query.weight
    weight.data = weight.data.T.contiguous()


def transposed_kernel(model: ScratchPreTrainedModel) -> None:
    weight = parts(model, nn.Conv2d)[-1].weight
    weight.data = weight.data.transpose(2, 3).contiguous()


def head_of_its_own(model: ScratchPreTrainedModel) -> None:
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())


def unscaled_embeddings(model: ScratchPreTrainedModel) -> None:
    model.model.encoder.embeddings.scale = 1.0


def beams_that_keep_their_past(model: ScratchPreTrainedModel) -> None:
    def forget_to_reorder(module, args, kwargs) -> None:
        if kwargs.get("cache") is not None:
            kwargs["cache"].reorder_cache = lambda beams: None

    model.register_forward_pre_hook(forget_to_reorder, with_kwargs=True)


def every_step_at_position_0(model: ScratchPreTrainedModel) -> None:
    """Positions that do not go on from the cache."""
    position = next(
        m for name, m in reversed([*model.named_modules()]) if name.endswith("position")
    )
    find = position.forward
    position.forward = lambda length, position_ids=None: find(
        length, torch.arange(length)[None] if length == 1 else position_ids
    )


def a_detour_beyond_float16(model: ScratchPreTrainedModel) -> None:
    parts(model, nn.LayerNorm)[0].register_forward_hook(lambda m, args, out: out * 1e5 / 1e5)


def statistics_that_move_faster(model: ScratchPreTrainedModel) -> None:
    parts(model, nn.BatchNorm2d)[0].momentum = 0.2


def another_relu(model: ScratchPreTrainedModel) -> None:
    model.resnet.stages[0].blocks[0].activation = nn.LeakyReLU(1e-3)


def another_eps_of_batches(model: ScratchPreTrainedModel) -> None:
    parts(model, nn.BatchNorm2d)[-1].eps = 1e-3


GPT2 = ("gpt2", "causal-lm")
VIT = ("vit", "image-classification")
TRANSFORMER = ("marian", "seq2seq-lm")
RESNET = ("resnet", "image-classification")
FORWARD, GENERATION = ("forward",), ("generation",)


@pytest.mark.parametrize(
    ("model", "fault", "comparisons", "stage", "row"),
    [
        (GPT2, another_activation, FORWARD, "hidden states", "layer 2"),
        (VIT, the_tanh_gelu, FORWARD, "hidden states", "layer 2"),
        (TRANSFORMER, another_activation, FORWARD, "hidden states", "decoder layer 2"),
        (RESNET, another_relu, FORWARD, "hidden states", "layer 1"),
        (GPT2, another_eps, FORWARD, "hidden states", "layer 1"),
        (VIT, another_eps, FORWARD, "hidden states", "layer 1"),
        (TRANSFORMER, another_eps, FORWARD, "hidden states", "encoder layer 1"),
        (RESNET, another_eps_of_batches, FORWARD, "hidden states", "layer 3"),
        (GPT2, another_scale, FORWARD, "attention maps", "layer 2"),
        (VIT, another_scale, FORWARD, "attention maps", "layer 2"),
        (TRANSFORMER, another_scale, FORWARD, "attention maps", "cross layer 2"),
        (GPT2, one_key_of_the_future, FORWARD, "hidden states", "layer 1"),
        (TRANSFORMER, one_key_of_the_future, FORWARD, "hidden states", "decoder layer 1"),
        (GPT2, positions_one_further, FORWARD, "hidden states", "embeddings"),
        (VIT, patches_one_further, FORWARD, "hidden states", "embeddings"),
        (TRANSFORMER, positions_one_further, FORWARD, "hidden states", "encoder embeddings"),
        (GPT2, transposed_query, FORWARD, "attention maps", "layer 2"),
        (VIT, transposed_query, FORWARD, "attention maps", "layer 2"),
        (TRANSFORMER, transposed_query, FORWARD, "attention maps", "cross layer 2"),
        (RESNET, transposed_kernel, FORWARD, "hidden states", "layer 3"),
        (GPT2, head_of_its_own, ("gradients",), "gradients", "transformer.token.weight"),
        (TRANSFORMER, head_of_its_own, ("gradients",), "gradients", "model.embedding.weight"),
        (TRANSFORMER, unscaled_embeddings, FORWARD, "hidden states", "encoder embeddings"),
        (GPT2, beams_that_keep_their_past, GENERATION, "generation", "beams: logits"),
        (TRANSFORMER, beams_that_keep_their_past, GENERATION, "generation", "beams: logits"),
        (GPT2, every_step_at_position_0, GENERATION, "generation", "greedy: logits"),
        (TRANSFORMER, every_step_at_position_0, GENERATION, "generation", "greedy: logits"),
        (GPT2, a_detour_beyond_float16, ("half precision",), "half precision", "float16: values"),
        (VIT, a_detour_beyond_float16, ("half precision",), "half precision", "float16: values"),
        (RESNET, statistics_that_move_faster, ("SGD",), "after 10 SGD steps", "resnet.stem.norm."),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else getattr(value, "__name__", ""),
)
def test_a_fault_of_any_architecture_is_found_where_it_shows(
    model, fault, comparisons, stage, row, tmp_path
) -> None:
    model_type, head = model
    write_random_checkpoint(tmp_path, architectures()[model_type], head)
    pair = load_pair(tmp_path, head)
    batches = example_batches(pair.scratch.config, head)
    pair.scratch.eval()
    fault(pair.scratch)
    rows = compare_computing(pair.scratch, pair.reference, batches, comparisons)
    missed = [(r.stage, r.name) for r in rows if not r.passed]
    assert any(s == stage and name.startswith(row) for s, name in missed), missed


@pytest.mark.parametrize(("model_type", "head"), [GPT2, VIT, TRANSFORMER, RESNET])
def test_without_a_fault_these_comparisons_pass(model_type, head, tmp_path) -> None:
    write_random_checkpoint(tmp_path, architectures()[model_type], head)
    pair = load_pair(tmp_path, head)
    batches = example_batches(pair.scratch.config, head)
    comparisons = ("forward", "gradients", "half precision", "generation", "SGD")
    rows = compare_computing(pair.scratch, pair.reference, batches, comparisons)
    assert all(row.passed for row in rows)


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
