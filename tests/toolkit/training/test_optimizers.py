"""Parameter groups: what is decayed, and how fast each layer learns."""

from __future__ import annotations

import copy

import pytest
import torch
import transformers
from torch import nn

from toolkit.config import TrainConfig
from toolkit.errors import UserError
from toolkit.training.optimizers import build_optimizer, learning_rate_shares, set_learning_rate

CONFIG = transformers.BertConfig(
    vocab_size=11, hidden_size=4, num_hidden_layers=2, num_attention_heads=1,
    intermediate_size=4, max_position_embeddings=6,
)  # fmt: skip


def test_each_layer_learns_slower_than_the_one_above() -> None:
    model = transformers.BertForSequenceClassification(CONFIG)
    shares = learning_rate_shares(model, 0.5)
    assert shares["classifier.weight"] == shares["bert.pooler.dense.bias"] == 1
    assert shares["bert.encoder.layer.1.output.dense.weight"] == 0.5
    assert shares["bert.encoder.layer.0.output.dense.weight"] == 0.25
    assert shares["bert.embeddings.LayerNorm.weight"] == 0.125
    assert set(learning_rate_shares(model, None).values()) == {1.0}


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_a_step_with_decay_is_one_of_each_layer_with_its_own_rate(optimizer: str) -> None:
    """torch's own optimizer, one per parameter, each with the rate counted by hand."""
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(CONFIG).eval()
    expected = copy.deepcopy(model)
    train = TrainConfig(
        optimizer=optimizer, learning_rate=1.0, layer_decay=0.5, weight_decay=0.1,  # type: ignore[arg-type]
    )  # fmt: skip
    ours = build_optimizer(model, train)
    decay = {
        "classifier": 1.0,
        "pooler": 1.0,
        "layer.1.": 0.5,
        "layer.0.": 0.25,
        "embeddings": 0.125,
    }
    theirs = []
    for name, parameter in expected.named_parameters():
        share = next(value for part, value in decay.items() if part in name)
        rate, weight_decay = 0.01 * share, 0.1 if parameter.ndim > 1 else 0.0
        if optimizer == "sgd":
            theirs.append(torch.optim.SGD(
                [parameter], rate, momentum=0.9, nesterov=True, weight_decay=weight_decay
            ))  # fmt: skip
        else:
            theirs.append(torch.optim.AdamW([parameter], rate, weight_decay=weight_decay))
    batch = {"input_ids": torch.tensor([[1, 2, 3], [4, 5, 6]]), "labels": torch.tensor([0, 1])}
    for _ in range(2):
        for one in (model, expected):
            one.zero_grad()
            one(**batch).loss.backward()
        set_learning_rate(ours, 0.01)
        ours.step()
        for single in theirs:
            single.step()
    for (name, mine), (_, other) in zip(
        model.named_parameters(), expected.named_parameters(), strict=True
    ):
        assert torch.allclose(mine, other, rtol=0, atol=1e-6), name


def test_a_model_without_layers_cannot_have_layer_wise_rates() -> None:
    model = nn.Linear(2, 2)
    with pytest.raises(UserError, match=r"layer_decay 0.9: Linear has no layers"):
        build_optimizer(model, TrainConfig(layer_decay=0.9))
    groups = build_optimizer(model, TrainConfig(weight_decay=0.1)).param_groups
    assert [(len(g["params"]), g["weight_decay"]) for g in groups] == [(1, 0.1), (1, 0.0)]


def test_what_is_frozen_is_in_no_group() -> None:
    model = transformers.BertForSequenceClassification(CONFIG)
    model.bert.requires_grad_(False)
    groups = build_optimizer(model, TrainConfig(layer_decay=0.5)).param_groups
    assert sum(len(group["params"]) for group in groups) == 2
    model.requires_grad_(False)
    with pytest.raises(UserError, match="nothing is left to train"):
        build_optimizer(model, TrainConfig())
