"""Layers computed again give the same training, and keep less in memory."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import datasets
import numpy as np
import pytest
import torch
import transformers
from torch import nn

from scratch_models import ScratchLSTMConfig, ScratchLSTMForSequenceClassification
from scratch_models.hub.auto import scratch_class
from toolkit.adapters import LoraSettings, add_lora
from toolkit.config import Invocation, RunConfig, TrainConfig
from toolkit.errors import UserError
from toolkit.evaluation import ClassificationMetric
from toolkit.objectives import Batch, Classification
from toolkit.run import start_run
from toolkit.training.activations import count_saved_tensors
from toolkit.training.engine import fit
from toolkit.training.freezing import freeze_lowest
from toolkit.training.gradient_checkpointing import checkpoint_layers

pytestmark = pytest.mark.usefixtures("fresh_accelerator")

HEAD = "sequence-classification"
SIZES = {"num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 2,
         "intermediate_size": 64, "initializer_range": 0.2, "vocab_size": 40, "num_labels": 2,
         "pad_token_id": 0}  # fmt: skip
GPT2 = {"n_layer": 3, "n_embd": 32, "n_head": 2, "vocab_size": 40, "num_labels": 2,
        "initializer_range": 0.2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1,
        "n_positions": 40}  # fmt: skip


def make_rows(count: int, seed: int) -> datasets.Dataset:
    generator = np.random.default_rng(seed)
    ids = [generator.integers(1, 40, generator.integers(2, 33)).tolist() for _ in range(count)]
    labels = [int(sum(row) / len(row) > 20) for row in ids]
    lengths = [len(row) for row in ids]
    return datasets.Dataset.from_dict({"input_ids": ids, "label": labels, "length": lengths})


def collate(rows: list[dict[str, Any]]) -> Batch:
    ids = [torch.tensor(row["input_ids"]) for row in rows]
    padded = nn.utils.rnn.pad_sequence(ids, batch_first=True)
    return {
        "input_ids": padded,
        "attention_mask": (padded != 0).long(),
        "labels": torch.tensor([row["label"] for row in rows]),
    }


def build(architecture: str, implementation: str, dropout: float) -> nn.Module:
    torch.manual_seed(1)
    config: Any
    if architecture == "bert":
        config = transformers.BertConfig(
            **SIZES, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout
        )
    else:
        config = transformers.GPT2Config(
            **GPT2, resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout
        )
    if implementation == "hf":
        return transformers.AutoModelForSequenceClassification.from_config(config)
    return scratch_class(config.model_type, HEAD)(config)


def whole(model: nn.Module) -> nn.Module:
    return model


def with_lora(model: nn.Module) -> nn.Module:
    torch.manual_seed(2)
    return add_lora(model, LoraSettings(rank=2, dropout=0.1), [])


def without_embeddings(model: nn.Module) -> nn.Module:
    freeze_lowest(model, 1)
    return model


@pytest.mark.parametrize(
    ("choose", "dropout"), [(whole, 0.3), (with_lora, 0.0), (without_embeddings, 0.0)]
)
@pytest.mark.parametrize("implementation", ["scratch", "hf"])
@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_three_steps_give_the_same_weights(
    tmp_path: Any,
    architecture: str,
    implementation: str,
    choose: Callable[[nn.Module], nn.Module],
    dropout: float,
) -> None:
    """SGD, because Adam makes numbers of the noise that is the gradient of a key's bias."""
    data = SimpleNamespace(train=make_rows(24, 0), validation=make_rows(6, 1))
    trained = []
    for checkpointing in (False, True):
        train = TrainConfig(
            max_steps=3, batch_size=4, accumulation_steps=2, learning_rate=0.01,
            optimizer="sgd", gradient_checkpointing=checkpointing,
        )  # fmt: skip
        config = RunConfig(train=train, output_dir=str(tmp_path), run_id=str(checkpointing))
        model: Any = choose(build(architecture, implementation, dropout))
        result = fit(
            start_run(Invocation(config, None), "x"), model, data, objective=Classification(),
            collate=collate, metric=ClassificationMetric(2),
        )  # fmt: skip
        assert model.config.use_cache is True
        trained.append(result.model.state_dict())
    for name, value in trained[0].items():
        torch.testing.assert_close(trained[1][name], value, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("implementation", ["scratch", "hf"])
@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_less_is_kept_for_the_backward_pass(
    architecture: str, implementation: str, caplog: pytest.LogCaptureFixture
) -> None:
    batch = collate([row | {"index": 0} for row in make_rows(16, 0)])
    model = build(architecture, implementation, 0.1).train()
    transformers.utils.logging.enable_propagation()
    kept = []
    for _ in range(2):
        with count_saved_tensors(model) as saved:
            Classification().loss(model, batch).sum().backward()
        kept.append(saved.bytes)
        checkpoint_layers(model)
    transformers.utils.logging.disable_propagation()
    assert kept[1] < kept[0] / 3
    assert caplog.text == ""


@pytest.mark.parametrize(
    "model",
    [
        nn.Linear(2, 2),
        ScratchLSTMForSequenceClassification(
            ScratchLSTMConfig(vocab_size=9, embedding_size=4, hidden_size=4)
        ),
        transformers.ResNetForImageClassification(
            transformers.ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1])
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_without_such_layers_is_refused(model: nn.Module) -> None:
    with pytest.raises(UserError) as error:
        checkpoint_layers(model)
    assert f"{type(model).__name__} cannot compute its layers again" in str(error.value)


def test_refused_before_a_run_directory_is_made(tmp_path: Any) -> None:
    config = RunConfig(train=TrainConfig(gradient_checkpointing=True), output_dir=str(tmp_path))
    data = SimpleNamespace(train=make_rows(4, 0), validation=make_rows(2, 1))
    with pytest.raises(UserError, match=r"--train\.gradient_checkpointing"):
        fit(
            start_run(Invocation(config, None), "x"), nn.Linear(2, 2), data,
            objective=Classification(), collate=collate, metric=ClassificationMetric(2),
        )  # fmt: skip
    assert list(tmp_path.iterdir()) == []
