"""Every architecture equals HuggingFace's: over heads, attentions, configs, losses and seeds.

Architectures are found in their folders; a new one is tested without an edit here.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from transformers import PreTrainedConfig

from scratch_models.hub.architecture import Architecture, architectures
from scratch_models.hub.mapping import to_own_names
from scratch_models.parity import (
    ParityReport,
    ParityRow,
    compare_generation,
    example_batches,
    load_pair,
)
from scratch_models.parity.check import COMPARISONS
from scratch_models.parity.grid import (
    DEFAULT,
    check_architecture,
    check_random,
    compared_heads,
    config_fields,
    most_complete_head,
    variants_of,
    write_random_checkpoint,
)
from scratch_models.parity.loading import classes_to_compare, has_attention
from scratch_models.parity.saving import compare_saving

ARCHITECTURES = {a.model_type: a for a in architectures().values() if compared_heads(a)}
HEADS = [(name, head) for name, a in ARCHITECTURES.items() for head in compared_heads(a)]
WITHOUT_TRAINING = ("loading", "saving", "forward", "gradients")
_FORWARD = ("hidden states", "attention maps", "outputs", "cache")


def assert_equal(report: ParityReport) -> None:
    """Every row within its tolerance, and what `forward` gives within 1e-5 however large it is."""
    missed = [
        row
        for row in report.rows
        if not row.difference
        <= (min(row.tolerance, 1e-5) if row.stage in _FORWARD else row.tolerance)
    ]
    assert report.rows
    assert not missed, missed


def attentions(model_type: str, head: str) -> list[str]:
    _, reference_class = classes_to_compare(model_type, head)
    return ["sdpa", "eager", "scratch"] if has_attention(reference_class) else ["none"]


@pytest.mark.parametrize(
    ("model_type", "head", "attn"),
    [
        # HuggingFace's eager attention, too, for one head of every architecture.
        pytest.param(
            model_type,
            head,
            attn,
            marks=() if attn != "eager" or head == "model" else pytest.mark.slow,
        )
        for model_type, head in HEADS
        for attn in attentions(model_type, head)
    ],
)
def test_everything_over_heads_and_attentions(model_type: str, head: str, attn: str) -> None:
    reports = list(check_architecture(ARCHITECTURES[model_type], [head], [DEFAULT], [attn]))
    assert [report.attn_implementation for report in reports] == [attn]
    assert reports[0].weights == "random"
    assert_equal(reports[0])
    stages = {row.stage for row in reports[0].rows}
    expected = {"loading", "saving", "hidden states", "outputs", "gradients", "half precision"}
    expected |= {"after 10 SGD steps", "after 10 AdamW steps"}
    expected |= {"attention maps"} if attn != "none" else set()
    expected |= {"generation"} if head in ("causal-lm", "seq2seq-lm") else set()
    assert expected <= stages


@pytest.mark.parametrize(
    ("model_type", "variant"),
    [(name, v) for name, a in ARCHITECTURES.items() for v in variants_of(a) if v != DEFAULT],
)
def test_values_gradients_and_saves_over_configs(model_type: str, variant: str) -> None:
    architecture = ARCHITECTURES[model_type]
    random = any("drop" in field for field in variants_of(architecture)[variant])
    comparisons = (*WITHOUT_TRAINING, "SGD") if random else WITHOUT_TRAINING
    head = most_complete_head(architecture)
    assert_equal(check_random(architecture, head, variant, comparisons=comparisons))


CLASSIFIERS = [(m, h) for m, h in HEADS if h in ("sequence-classification", "image-classification")]


@pytest.mark.parametrize(
    ("problem", "labels"),
    [("regression", 1), ("regression", 3), ("multi_label_classification", 4), (None, 1), (None, 5)],
)
@pytest.mark.parametrize(("model_type", "head"), CLASSIFIERS)
def test_losses_of_classifiers(
    model_type: str, head: str, problem: str | None, labels: int
) -> None:
    changes: dict[str, Any] = {"problem_type": problem, "num_labels": labels}
    comparisons = ("forward", "gradients")
    report = check_random(ARCHITECTURES[model_type], head, comparisons=comparisons, **changes)
    assert_equal(report)


@pytest.mark.parametrize(("model_type", "head"), HEADS)
def test_the_same_seed_gives_huggingface_s_fresh_weights_and_saves(
    model_type: str, head: str
) -> None:
    """So that a run from random weights is the same run under both implementations."""
    architecture = ARCHITECTURES[model_type]
    own_class, reference_class = classes_to_compare(model_type, head)
    models = []
    for model_class in (own_class, reference_class):
        torch.manual_seed(7)
        models.append(model_class(own_class.config_class(**config_fields(architecture, head))))
    scratch, reference = models
    expected, own = to_own_names(scratch, reference.state_dict()), scratch.state_dict()
    assert own.keys() <= expected.keys()
    assert all(torch.equal(own[name], expected[name]) for name in own)
    assert all(row.passed for row in compare_saving(scratch, reference))


def test_what_cannot_be_compared_is_named() -> None:
    architecture: Architecture = ARCHITECTURES["bert"]
    with pytest.raises(ValueError, match="no comparison speed: there are loading, saving"):
        check_random(architecture, "model", comparisons=("speed",))
    with pytest.raises(ValueError, match="no variant 'blue' of BERT: there are default, "):
        next(check_architecture(architecture, ["model"], ["blue"]))
    with pytest.raises(ValueError, match="'bert' model for 'causal-lm': it has model"):
        next(check_architecture(architecture, ["causal-lm"]))


def test_every_head_variant_and_attention_is_compared() -> None:
    reports = list(
        check_architecture(
            ARCHITECTURES["bert"],
            ["model", "masked-lm"],
            ["default", "relu"],
            ["sdpa", "eager"],
            (),
        )
    )
    found = [(r.huggingface_class, r.model, r.attn_implementation) for r in reports]
    assert len(set(found)) == 8
    assert found[0] == ("BertModel", "random weights, default", "sdpa")


def test_without_a_choice_all_is_compared(monkeypatch) -> None:
    from scratch_models.parity import grid

    asked = []
    monkeypatch.setattr(grid, "check_random", lambda *arguments: asked.append(arguments[1:]))
    list(check_architecture(ARCHITECTURES["resnet"]))
    variants = list(variants_of(ARCHITECTURES["resnet"]))
    heads = ["model", "image-classification"]
    assert asked == [(h, v, "none", COMPARISONS) for h in heads for v in variants]


def tiny_config(model_type: str, head: str, **changes: Any) -> PreTrainedConfig:
    own_class, _ = classes_to_compare(model_type, head)
    return own_class.config_class(**config_fields(ARCHITECTURES[model_type], head, **changes))


@pytest.mark.parametrize(("model_type", "head"), [("bert", "masked-lm"), ("gpt2", "causal-lm")])
def test_texts_are_padded_right_left_wholly_and_not_at_all(model_type: str, head: str) -> None:
    right, left, whole = example_batches(tiny_config(model_type, head), head)
    assert right["attention_mask"].sum(1).tolist() == [16, 11, 3, 16]
    assert right["attention_mask"][:, 0].all()
    assert left["attention_mask"].sum(1).tolist() == [9, 5, 0, 7]
    assert left["attention_mask"][[0, 1, 3], -1].all()
    assert left["position_ids"][1].tolist() == [0, 0, 0, 0, 0, 1, 2, 3, 4]
    assert "attention_mask" not in whole
    assert ("token_type_ids" in right) == (model_type == "bert")
    if head == "causal-lm":
        real = right["attention_mask"].bool()
        assert torch.equal(right["labels"][real], right["input_ids"][real])
        assert (right["labels"][~real] == -100).all()


def test_a_decoder_without_padding_token_classifies_texts_one_by_one() -> None:
    config = tiny_config("gpt2", "sequence-classification", pad_token_id=None)
    batches = example_batches(config, "sequence-classification")
    assert {len(batch["input_ids"]) for batch in batches} == {1}
    report = check_random(ARCHITECTURES["gpt2"], "sequence-classification", pad_token_id=None)
    assert_equal(report)


def test_ways_to_generate_are_what_they_are_called_whatever_the_checkpoint_prefers(
    tmp_path,
) -> None:
    write_random_checkpoint(tmp_path, ARCHITECTURES["marian"], "seq2seq-lm")
    pair = load_pair(tmp_path, "seq2seq-lm")
    logits = {}
    for beams in (1, 4):
        for model in (pair.scratch, pair.reference):
            model.generation_config.num_beams = beams
        rows = compare_generation(pair.scratch, pair.reference)
        assert all(row.passed for row in rows)
        logits[beams] = [row.tolerance for row in rows]  # a multiple of the largest logit
    assert logits[1] == logits[4]


def test_sources_and_targets_are_of_every_kind() -> None:
    config = tiny_config("marian", "seq2seq-lm")
    batches = example_batches(config, "seq2seq-lm")
    assert all((batch["labels"] == -100).any() for batch in batches[:2])
    assert ["decoder_input_ids" in batch for batch in batches] == [False, True, False]
    assert not batches[1]["attention_mask"][2].any()
    bodies = example_batches(tiny_config("marian", "model"), "model")
    assert all("labels" not in batch and "decoder_input_ids" in batch for batch in bodies)


@pytest.mark.parametrize(
    ("model_type", "changes", "shapes"),
    [
        ("vit", {}, [(4, 3, 16, 16), (4, 3, 24, 16)]),
        ("vit", {"image_size": (16, 40), "num_channels": 1}, [(4, 1, 16, 40), (4, 1, 16, 40)]),
        ("vit", {"image_size": 224, "patch_size": 16}, [(2, 3, 224, 224), (2, 3, 48, 32)]),
        ("resnet", {}, [(4, 3, 32, 32), (4, 3, 40, 33)]),
    ],
)
def test_images_have_the_config_s_size_and_others(model_type: str, changes: Any, shapes) -> None:
    head = "image-classification"
    batches = example_batches(tiny_config(model_type, head, **changes), head)
    assert [tuple(batch["pixel_values"].shape) for batch in batches] == shapes
    stretched = shapes[0] != shapes[1] and model_type == "vit"
    assert batches[1].get("interpolate_pos_encoding", False) == stretched


def test_a_largest_difference_is_infinite_where_one_is_undefined() -> None:
    report = ParityReport("m", "S", "H", "sdpa", 1)
    differences = [0.5, math.nan, 0.25]
    report.rows = [ParityRow("outputs", str(d), d, 1.0) for d in differences]
    assert report.largest_difference == {"forward": math.inf}
    assert report.to_dict()["largest_difference"] == {"forward": None}


def test_the_largest_differences_sum_a_report_up() -> None:
    report = check_random(ARCHITECTURES["gpt2"], "causal-lm")
    largest = report.largest_difference
    assert set(largest) == {"forward", "gradients", "training"}
    gradients = [row.difference for row in report.rows if row.stage == "gradients"]
    assert largest["gradients"] == max(gradients) > 0
    trained = [row.difference for row in report.rows if row.stage.startswith("after ")]
    assert largest["training"] == max(trained)
    assert report.to_dict()["largest_difference"] == largest
    assert report.to_dict()["weights"] == "random"
