"""BERT equals HuggingFace's over configs, heads, inputs and attention implementations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from scratch_models.parity import (
    ParityRow,
    compare_computing,
    compare_forward,
    compare_gradients,
    compare_saving,
)
from scratch_models.parity.inputs import example_batches

HEADS = [
    "model",
    "pretraining",
    "masked-lm",
    "sequence-classification",
    "token-classification",
    "question-answering",
]

CONFIGS: dict[str, dict[str, Any]] = {
    "gelu": {"hidden_act": "gelu"},
    "gelu_new": {"hidden_act": "gelu_new"},
    "relu": {"hidden_act": "relu"},
    "eps 0.1": {"layer_norm_eps": 0.1},
    "eps 1e-5": {"layer_norm_eps": 1e-5},
    "one segment": {"type_vocab_size": 1},
    "three segments": {"type_vocab_size": 3},
    "one layer": {"num_hidden_layers": 1},
    "five layers": {"num_hidden_layers": 5},
    "one head": {"num_attention_heads": 1},
    "narrow inside": {"intermediate_size": 8},
    "wide": {"hidden_size": 60, "num_attention_heads": 5, "intermediate_size": 100},
    "padding token 7": {"pad_token_id": 7},
    "no padding token": {"pad_token_id": None},
    "no dropout": {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
}


def assert_equal(rows: list[ParityRow]) -> None:
    """Every row within its tolerance, and what `forward` gives within 1e-5 however large it is."""
    assert rows
    forward = ("hidden states", "attention maps", "outputs")
    limits = [min(row.tolerance, 1e-5) if row.stage in forward else row.tolerance for row in rows]
    missed = [row for row, most in zip(rows, limits, strict=True) if not row.difference <= most]
    assert not missed, missed


@pytest.mark.parametrize("name", CONFIGS)
def test_every_value_and_gradient_over_configs(name: str, tiny_config, tiny_pair) -> None:
    config = tiny_config(**CONFIGS[name])
    pair, batches = tiny_pair(config, "pretraining"), example_batches(config, "pretraining")
    rows = compare_forward(*pair, batches) + compare_gradients(*pair, batches)
    rows += compare_saving(*pair)
    assert {"hidden states", "attention maps", "outputs", "gradients"} <= {r.stage for r in rows}
    assert_equal(rows)


@pytest.mark.parametrize("attn", ["sdpa", "eager", "scratch"])
@pytest.mark.parametrize("head", HEADS)
def test_every_value_gradient_and_step_over_heads_and_attentions(
    head: str, attn: str, tiny_config, tiny_pair
) -> None:
    config = tiny_config(num_labels=2 if head == "question-answering" else 3)
    rows = compare_computing(*tiny_pair(config, head, attn), example_batches(config, head))
    assert_equal(rows)


@pytest.mark.parametrize(
    ("problem", "labels"),
    [("regression", 1), ("regression", 3), ("multi_label_classification", 4), (None, 1)],
)
def test_problem_types_of_sequence_classification(
    problem: str | None, labels: int, tiny_config, tiny_pair
) -> None:
    config = tiny_config(problem_type=problem, num_labels=labels)
    head = "sequence-classification"
    rows = compare_computing(*tiny_pair(config, head), example_batches(config, head))
    assert_equal(rows)


def right_padding(length: int) -> Tensor:
    mask = torch.ones(3, length, dtype=torch.long)
    mask[1, length // 2 :] = 0
    mask[2, 1:] = 0
    return mask


def with_an_empty_row(length: int) -> Tensor:
    mask = right_padding(length)
    mask[2] = 0
    return mask


MASKS: dict[str, Any] = {
    "none": lambda length: None,
    "right": right_padding,
    "left": lambda length: right_padding(length).flip(1),
    "in the middle": lambda length: right_padding(length).roll(length // 3, dims=1),
    "bool": lambda length: right_padding(length).bool(),
    "float": lambda length: right_padding(length).float(),
    "half": lambda length: right_padding(length).half(),
    "int32": lambda length: right_padding(length).int(),
    "uint8": lambda length: right_padding(length).byte(),
    "empty row": with_an_empty_row,
    "all ones": lambda length: torch.ones(3, length, dtype=torch.long),
}


@pytest.mark.parametrize("attn", ["sdpa", "eager", "scratch"])
@pytest.mark.parametrize("mask", MASKS)
def test_every_kind_of_padding(mask: str, attn: str, tiny_config, tiny_pair) -> None:
    config = tiny_config()
    batch = {"input_ids": torch.randint(61, (3, 9)), "attention_mask": MASKS[mask](9)}
    pair = tiny_pair(config, "model", attn)
    assert_equal(compare_forward(*pair, [batch]) + compare_gradients(*pair, [batch]))


def input_variants(config, model) -> dict[str, dict[str, Tensor]]:
    ids = torch.randint(61, (2, 9))
    return {
        "token types": {"input_ids": ids, "token_type_ids": torch.randint(2, (2, 9))},
        "no token types": {"input_ids": ids},
        "maximum length": {"input_ids": torch.randint(61, (2, config.max_position_embeddings))},
        "one token": {"input_ids": ids[:, :1]},
        "one row": {"input_ids": ids[:1]},
        "embeddings for tokens": {"inputs_embeds": torch.randn(2, 9, 32)},
        "chosen positions": {"input_ids": ids, "position_ids": torch.arange(9).flip(0)[None]},
        "positions of each row": {"input_ids": ids, "position_ids": torch.randint(24, (2, 9))},
    }


@pytest.mark.parametrize(
    "name",
    [
        "token types",
        "no token types",
        "maximum length",
        "one token",
        "one row",
        "embeddings for tokens",
        "chosen positions",
        "positions of each row",
    ],
)
def test_every_kind_of_input(name: str, tiny_config, tiny_pair) -> None:
    config = tiny_config()
    pair = tiny_pair(config, "model")
    batch = input_variants(config, pair[0])[name]
    assert_equal(compare_forward(*pair, [batch]) + compare_gradients(*pair, [batch]))


@pytest.mark.parametrize("head", HEADS)
def test_fresh_models_save_what_huggingface_saves(head: str, tiny_config, tiny_pair) -> None:
    rows = compare_saving(*tiny_pair(tiny_config(num_labels=2), head))
    assert all(row.passed for row in rows), rows


@pytest.mark.parametrize("head", HEADS)
def test_the_same_seed_gives_huggingface_s_fresh_weights(head: str, tiny_config, tiny_pair) -> None:
    """So that a run from random weights is the same run under both implementations."""
    import transformers

    from scratch_models import scratch_class
    from scratch_models.hub.mapping import to_own_names

    own_class = scratch_class("bert", head)
    torch.manual_seed(7)
    scratch = own_class(tiny_config())
    torch.manual_seed(7)
    reference = getattr(transformers, own_class.huggingface_class)(tiny_config())
    expected = to_own_names(scratch, reference.state_dict())
    own = scratch.state_dict()
    assert own.keys() == expected.keys()
    assert all(torch.equal(own[name], expected[name]) for name in own)


def test_return_dict_false_gives_huggingface_s_tuple(tiny_config, tiny_pair) -> None:
    scratch, reference = tiny_pair(tiny_config(), "sequence-classification")
    ids, labels = torch.randint(61, (2, 5)), torch.tensor([0, 1])
    flags = {"return_dict": False, "output_hidden_states": True}
    ours, theirs = scratch(ids, labels=labels, **flags), reference(ids, labels=labels, **flags)
    assert isinstance(ours, tuple)
    assert len(ours) == len(theirs)
    torch.testing.assert_close(ours[1], theirs[1])
    for own, expected in zip(ours[2], theirs[2], strict=True):
        torch.testing.assert_close(own, expected)
