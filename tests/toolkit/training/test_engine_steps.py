"""One optimizer step equals the full-batch step, however its rows are divided."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import numpy as np
import pytest
import torch
import transformers
from accelerate import Accelerator
from accelerate.utils import GradientAccumulationPlugin
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from toolkit.batching import padded_lengths, plan_epoch
from toolkit.config import RunConfig, TrainConfig
from toolkit.errors import UserError
from toolkit.objectives import IGNORED, Batch, Classification, Pretraining
from toolkit.training.optimizers import build_optimizer
from toolkit.training.train_state import TrainState
from toolkit.training.training_steps import (
    Training,
    count_steps,
    train_step,
    training_steps,
)

# A cluster of threads that average gradients as DistributedDataParallel does


class Cluster:
    """What all processes share."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.slots: list[Any] = [None] * size
        self.barrier = threading.Barrier(size, timeout=20)

    def gather(self, rank: int, value: Any) -> list[Any]:
        self.slots[rank] = value
        self.barrier.wait()
        found = list(self.slots)
        self.barrier.wait()
        return found


class Member:
    """The part of an Accelerator that the engine uses, for one process of a cluster."""

    device = torch.device("cpu")
    optimizer_step_was_skipped = False
    scaler = None

    def __init__(self, cluster: Cluster, rank: int, model: nn.Module) -> None:
        self.cluster, self.process_index, self.model = cluster, rank, model
        self.num_processes = cluster.size
        self.gradient_state = self
        self.sync = True

    def _set_sync_gradients(self, sync: bool) -> None:
        self.sync = sync

    def no_sync(self, model: nn.Module) -> Any:
        return nullcontext()

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()
        if self.sync:
            for parameter in self.model.parameters():
                grads = self.cluster.gather(self.process_index, parameter.grad)
                parameter.grad = torch.stack(grads).mean(0)

    def reduce(self, value: torch.Tensor, reduction: str) -> torch.Tensor:
        assert reduction == "sum"
        return torch.stack(self.cluster.gather(self.process_index, value)).sum(0)

    def clip_grad_norm_(self, parameters: Any, limit: float) -> torch.Tensor:
        assert self.sync
        return nn.utils.clip_grad_norm_(parameters, limit)


# A token task in float64, with labels that are ignored


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embed = nn.Embedding(20, 6).double()
        self.out = nn.Linear(6, 20).double()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        context = self.embed(ids).cumsum(1) / 3
        return self.out(torch.tanh(context))


class TokenTask:
    """Summed cross entropy over the tokens that are not ignored, in float64."""

    def count(self, batch: Batch) -> list[int]:
        return [int((batch["labels"] != IGNORED).sum())]

    def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        logits = model(batch["input_ids"]).flatten(0, 1)
        labels = batch["labels"].flatten()
        return nn.functional.cross_entropy(
            logits, labels, ignore_index=IGNORED, reduction="sum"
        ).view(1)

    def outputs(self, model: nn.Module, batch: Batch) -> dict[str, torch.Tensor]:
        raise NotImplementedError


def token_rows(count: int, seed: int = 0) -> datasets.Dataset:
    """Rows of 1 to 14 tokens; some have no label at all."""
    generator = np.random.default_rng(seed)
    ids, labels = [], []
    for row in range(count):
        length = int(generator.integers(1, 15))
        ids.append(generator.integers(0, 20, length).tolist())
        kept = generator.random(length) < (0 if row % 5 == 0 else 0.5)
        labels.append([int(x) if keep else IGNORED for x, keep in zip(ids[-1], kept, strict=True)])
    return datasets.Dataset.from_dict(
        {"input_ids": ids, "labels": labels, "length": [len(row) for row in ids]}
    )


def pad(rows: list[dict[str, Any]]) -> Batch:
    longest = max(len(row["input_ids"]) for row in rows)

    def padded(name: str, filler: int) -> torch.Tensor:
        return torch.tensor([r[name] + [filler] * (longest - len(r[name])) for r in rows])

    return {"input_ids": padded("input_ids", 0), "labels": padded("labels", IGNORED)}


def make_training(
    member: Any,
    model: nn.Module,
    rows: datasets.Dataset,
    train: TrainConfig,
    optimizer: Any = None,
    objective: Any = None,
    collate: Any = pad,
) -> Training:
    padded = None if train.batch_tokens is None else padded_lengths(rows)
    per_epoch, total = count_steps(len(rows), train, member.num_processes, padded)
    run = SimpleNamespace(config=SimpleNamespace(train=train, seed=5), accelerator=member)
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1.0)
    return Training(
        run=run, model=model, optimizer=optimizer, data=SimpleNamespace(train=rows),
        objective=objective or TokenTask(), collate=collate, collate_validation=collate,
        metric=SimpleNamespace(), steps_per_epoch=per_epoch, total_steps=total,
        lengths=np.asarray(rows["length"][:]), state=TrainState(), padded=padded,
    )  # fmt: skip


def run_steps(training: Training) -> list[dict[str, float]]:
    reports = []
    for step in training_steps(training):
        reports.append(train_step(training, step))
        training.state.step += 1
    return reports


def train_on_cluster(
    size: int,
    rows: datasets.Dataset,
    train: TrainConfig,
    build: Callable[[], nn.Module] = Tokens,
    objective: Any = None,
    collate: Any = pad,
) -> tuple[list[nn.Module], list[dict[str, float]]]:
    cluster, models, reports, errors = Cluster(size), [build() for _ in range(size)], {}, []

    def work(rank: int) -> None:
        try:
            member = Member(cluster, rank, models[rank])
            training = make_training(
                member, models[rank], rows, train, objective=objective, collate=collate
            )
            reports[rank] = run_steps(training)
        except BaseException as error:
            errors.append(error)
            cluster.barrier.abort()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return models, reports[0]


def by_hand(rows: datasets.Dataset, train: TrainConfig, global_batch: int) -> Any:
    """Full-batch steps of plain torch: mean over the tokens of all rows of the step."""
    model = Tokens()
    losses, norms = [], []
    lengths = np.asarray(rows["length"][:])
    total = train.epochs * math.ceil(len(rows) / global_batch)
    for epoch in range(train.epochs):
        for window in plan_epoch(len(rows), global_batch, 5, epoch, lengths):
            batch = pad([rows[int(i)] for i in window])
            logits, labels = model(batch["input_ids"]), batch["labels"]
            chosen = labels != IGNORED
            log_p = torch.log_softmax(logits, -1)
            terms = [-log_p[i, j, labels[i, j]] for i, j in chosen.nonzero().tolist()]
            loss = sum(terms) / max(len(terms), 1) if terms else 0 * logits.sum()
            grads = torch.autograd.grad(loss, list(model.parameters()))
            norm = math.sqrt(sum(float((g**2).sum()) for g in grads))
            scale = min(1.0, train.max_grad_norm / (norm + 1e-6)) if train.max_grad_norm else 1.0
            rate = train.learning_rate * (1 - len(losses) / total)
            with torch.no_grad():
                for parameter, gradient in zip(model.parameters(), grads, strict=True):
                    parameter -= rate * scale * gradient
            losses.append(loss.item())
            norms.append(norm)
    return model, losses, norms


@settings(max_examples=12, deadline=None)
@given(
    processes=st.integers(1, 4),
    micro_batch=st.integers(1, 4),
    accumulation=st.integers(1, 3),
    rows=st.integers(1, 40),
    clip=st.sampled_from([None, 0.05]),
)
def test_weights_equal_full_batch_training_for_any_split(
    processes: int, micro_batch: int, accumulation: int, rows: int, clip: float | None
) -> None:
    data = token_rows(rows, seed=rows)
    train = TrainConfig(
        epochs=2, batch_size=micro_batch, accumulation_steps=accumulation, learning_rate=0.5,
        warmup_ratio=0.0, max_grad_norm=clip,
    )  # fmt: skip
    expected, losses, norms = by_hand(data, train, processes * micro_batch * accumulation)
    models, reports = train_on_cluster(processes, data, train)
    for model in models:  # in every process
        for ours, theirs in zip(model.parameters(), expected.parameters(), strict=True):
            assert (ours - theirs).abs().max() < 1e-9
    assert [r["loss"] for r in reports] == pytest.approx(losses, abs=1e-5)
    if clip is not None:  # logged as it was before clipping
        assert [r["grad_norm"] for r in reports] == pytest.approx(norms, rel=1e-6, abs=1e-9)


def test_short_batches_do_not_weigh_more_than_long_ones() -> None:
    """Micro-batches of 2, 7, 1 and 6 targets; a mean of their means would be half wrong."""
    generator = np.random.default_rng(3)
    ids = [generator.integers(0, 20, n).tolist() for n in (2, 7, 1, 6)]
    rows = datasets.Dataset.from_dict({"input_ids": ids, "labels": ids, "length": [2, 7, 1, 6]})
    train = TrainConfig(
        epochs=1, batch_size=1, accumulation_steps=4, learning_rate=1.0, warmup_ratio=0.0,
        max_grad_norm=None,
    )  # fmt: skip
    expected, _, _ = by_hand(rows, train, 4)
    (model,), _ = train_on_cluster(1, rows, train)
    assert all(
        (a - b).abs().max() < 1e-12
        for a, b in zip(model.parameters(), expected.parameters(), strict=True)
    )
    wrong = Tokens()
    means = [TokenTask().loss(wrong, pad([row])) / row["length"] for row in rows]
    wrong_grads = torch.autograd.grad(sum(means) / 4, list(wrong.parameters()))
    right_grads = [b - a for a, b in zip(expected.parameters(), Tokens().parameters(), strict=True)]
    off = torch.cat([(a - b).flatten() for a, b in zip(wrong_grads, right_grads, strict=True)])
    size = torch.cat([g.flatten() for g in right_grads])
    assert off.norm() / size.norm() > 0.1  # so the test above can tell them apart


class Sequences(nn.Module):
    """A classifier of mean-pooled texts."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.embed = nn.Embedding(20, 6, dtype=dtype)
        self.out = nn.Linear(6, 3, dtype=dtype)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        mask = attention_mask[..., None].to(self.embed.weight.dtype)
        pooled = (self.embed(input_ids).tanh() * mask).sum(1) / mask.sum(1)
        return SimpleNamespace(logits=self.out(pooled))


class SequenceTask(Classification):
    """The loss of classifiers, in the precision of the model."""

    def loss(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        logits = model(batch["input_ids"], batch["attention_mask"]).logits
        return nn.functional.cross_entropy(logits, batch["labels"], reduction="sum").view(1)


def collate_sequences(rows: list[dict[str, Any]]) -> Batch:
    batch = pad(rows)
    lengths = torch.tensor([row["length"] for row in rows])
    mask = (torch.arange(batch["input_ids"].shape[1]) < lengths[:, None]).long()
    labels = torch.tensor([row["input_ids"][0] % 3 for row in rows])
    return {"input_ids": batch["input_ids"], "attention_mask": mask, "labels": labels}


@settings(max_examples=15, deadline=None)
@given(
    processes=st.integers(1, 4),
    micro_batch=st.integers(1, 5),
    accumulation=st.integers(1, 3),
    rows=st.integers(1, 50),
    exact=st.booleans(),
)
def test_the_gradient_of_a_sequence_loss_is_the_full_batchs_for_any_split(
    processes: int, micro_batch: int, accumulation: int, rows: int, exact: bool
) -> None:
    """With plain SGD at rate 1 a step moves the weights by the gradient; also in a short step."""
    dtype, tolerance = (torch.float64, 1e-9) if exact else (torch.float32, 1e-5)
    data = token_rows(rows, seed=rows)
    train = TrainConfig(
        epochs=1, batch_size=micro_batch, accumulation_steps=accumulation, learning_rate=1.0,
        warmup_ratio=0.0, max_grad_norm=None, schedule="constant", group_by_length=rows % 2 == 0,
    )  # fmt: skip
    steps = math.ceil(rows / (processes * micro_batch * accumulation))
    for number in {1, steps}:  # the first window, and the last one, which is rarely full
        train.max_steps = number
        models, _ = train_on_cluster(
            processes, data, train, lambda: Sequences(dtype), SequenceTask(), collate_sequences
        )
        train.max_steps = number - 1
        before = Sequences(dtype)
        if number > 1:
            trained, _ = train_on_cluster(
                processes, data, train, lambda: Sequences(dtype), SequenceTask(), collate_sequences
            )
            before.load_state_dict(trained[0].state_dict())
        lengths = np.asarray(data["length"][:]) if train.group_by_length else None
        window = plan_epoch(rows, processes * micro_batch * accumulation, 5, 0, lengths)[number - 1]
        batch = collate_sequences([data[int(i)] for i in window])
        full = before.double()
        loss = SequenceTask().loss(full, batch).sum() / len(window)
        wanted = torch.cat([g.flatten() for g in torch.autograd.grad(loss, [*full.parameters()])])
        for model in models:
            moved = torch.cat(
                [(a - b).flatten() for a, b in
                 zip(full.parameters(), model.double().parameters(), strict=True)]
            )  # fmt: skip
            assert (moved - wanted).norm() <= tolerance * wanted.norm()


@pytest.mark.usefixtures("fresh_accelerator")
def test_accelerates_own_accumulation_setting_does_not_scale_the_gradient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from toolkit.accelerating import start_accelerator

    monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "4")
    rows = token_rows(6)
    train = TrainConfig(epochs=1, batch_size=2, accumulation_steps=2, learning_rate=0.5,
                        warmup_ratio=0.0, max_grad_norm=None)  # fmt: skip
    expected, losses, _ = by_hand(rows, train, 4)
    accelerator = start_accelerator(RunConfig(train=train))
    tokens = Tokens()
    model, optimizer = accelerator.prepare(tokens, torch.optim.SGD(tokens.parameters(), lr=1))
    reports = run_steps(make_training(accelerator, model, rows, train, optimizer))
    assert [r["loss"] for r in reports] == pytest.approx(losses, abs=1e-5)
    assert all(
        (a - b).abs().max() < 1e-9
        for a, b in zip(model.parameters(), expected.parameters(), strict=True)
    )


@pytest.mark.usefixtures("fresh_accelerator")
def test_gradients_are_clipped_once_a_step_after_they_are_unscaled() -> None:
    """Four passes, gradients far above the limit; with the loss scale of fp16, and without."""
    rows = token_rows(8)
    train = TrainConfig(epochs=1, batch_size=1, accumulation_steps=4, learning_rate=1.0,
                        warmup_ratio=0.0, max_grad_norm=0.01, schedule="constant")  # fmt: skip
    reports, weights = [], []
    for scaled in (False, True):
        accelerator: Any = Accelerator(gradient_accumulation_plugin=GradientAccumulationPlugin(1))
        if scaled:
            accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
            accelerator.native_amp = True
            accelerator.state._mixed_precision = "fp16"
        model = Sequences(torch.float32)
        optimizer = accelerator.prepare_optimizer(torch.optim.SGD(model.parameters(), lr=1.0))
        training = make_training(
            accelerator, model, rows, train, optimizer, SequenceTask(), collate_sequences
        )
        reports.append(run_steps(training))
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
        accelerator.state._mixed_precision = "no"
    for one, other in zip(*reports, strict=True):
        assert one["grad_norm"] > 10 * 0.01  # before clipping
        assert one["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-5)
    start = torch.cat([p.detach().flatten() for p in Sequences(torch.float32).parameters()])
    moved = [value - start for value in weights]
    assert 0.015 < moved[0].norm() <= 2 * 0.01 + 1e-6  # two steps of norm 0.01
    assert (moved[0] - moved[1]).norm() < 1e-4 * moved[0].norm()


@pytest.mark.usefixtures("fresh_accelerator")
def test_pretraining_on_a_real_bert_is_independent_of_the_split() -> None:
    """Two losses with counts of their own: masked tokens (some rows have none) and pairs."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=16, initializer_range=0.3,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    start = transformers.BertForPreTraining(config)
    rows = token_rows(11)

    def collate(examples: list[dict[str, Any]]) -> Batch:
        batch = pad(examples)
        lengths = torch.tensor([row["length"] for row in examples])
        mask = (torch.arange(batch["input_ids"].shape[1]) < lengths[:, None]).long()
        pairs = torch.tensor([row["index"] % 2 for row in examples])
        return {**batch, "attention_mask": mask, "next_sentence_label": pairs}

    results, losses = [], []
    for micro_batch, accumulation in [(6, 1), (1, 6), (2, 3), (4, 2)]:
        train = TrainConfig(
            epochs=1, batch_size=micro_batch, accumulation_steps=accumulation, learning_rate=0.1,
            warmup_ratio=0.0, max_grad_norm=None, max_steps=2 if accumulation != 2 else 1,
        )  # fmt: skip
        accelerator = Accelerator(gradient_accumulation_plugin=GradientAccumulationPlugin(1))
        model = copy.deepcopy(start)
        training = make_training(accelerator, model, rows, train, None, Pretraining(), collate)
        losses.append([report["loss"] for report in run_steps(training)])
        results.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    begin = torch.cat([p.detach().flatten() for p in start.parameters()])
    moved = (results[0] - begin).norm()
    assert moved > 0.01
    for other in results[1:3]:
        assert (other - results[0]).norm() < 1e-5 * moved
    # the first step against the loss HuggingFace computes for all its rows at once
    window = plan_epoch(11, 6, 5, 0, np.asarray(rows["length"][:]))[0]
    batch = collate([rows[int(i)] | {"index": int(i)} for i in window])
    expected = start.train()(**batch).loss.item()
    assert [loss[0] for loss in losses[:3]] == pytest.approx([expected] * 3, abs=1e-5)


# Schedule


@pytest.mark.parametrize(("processes", "accumulation"), [(1, 1), (2, 1), (4, 1), (2, 2), (1, 4)])
def test_learning_rate_falls_per_update_whatever_the_processes(
    processes: int, accumulation: int
) -> None:
    """64 rows, 4 per process and pass: the rate falls in equal parts and never reaches 0 early."""
    train = TrainConfig(
        epochs=1, batch_size=4, accumulation_steps=accumulation, learning_rate=1.0, warmup_ratio=0.0
    )
    _, reports = train_on_cluster(processes, token_rows(64), train)
    updates = 64 // (4 * processes * accumulation)
    assert [r["learning_rate"] for r in reports] == [1 - i / updates for i in range(updates)]


def test_batches_by_tokens_take_the_same_steps_on_any_number_of_processes() -> None:
    rows = token_rows(40)
    trained = []
    for processes, accumulation in [(1, 1), (2, 1), (1, 3), (2, 2)]:
        train = TrainConfig(
            epochs=2, batch_tokens=60, accumulation_steps=accumulation, learning_rate=0.1
        )
        models, reports = train_on_cluster(processes, rows, train)
        assert len(reports) > 8  # in 40 rows there are some 300 tokens
        trained.append(list(models[0].parameters()))
    for other in trained[1:]:
        for ours, theirs in zip(trained[0], other, strict=True):
            assert torch.allclose(ours, theirs, atol=1e-12)


def test_steps_are_counted_in_optimizer_steps() -> None:
    train = TrainConfig(epochs=3, batch_size=4, accumulation_steps=2)
    assert count_steps(65, train, 1) == (9, 27)
    assert count_steps(64, train, 2) == (4, 12)
    assert count_steps(3, train, 4) == (1, 3)
    train.max_steps = 5
    assert count_steps(65, train, 1) == (9, 5)


# Optimizer


def test_biases_and_norms_are_not_decayed_as_in_huggingfaces_trainer(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config)
    model.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    optimizer = build_optimizer(model, TrainConfig(weight_decay=0.3))
    groups = {
        g["weight_decay"]: {names[id(p)] for p in g["params"]} for g in optimizer.param_groups
    }
    trainer = transformers.Trainer(
        model, transformers.TrainingArguments(str(tmp_path), report_to=[], use_cpu=True)
    )
    decayed = set(trainer.get_decay_parameter_names(model)) - {
        "bert.embeddings.word_embeddings.weight"
    }
    assert groups[0.3] == decayed
    assert groups[0.0] == {
        name for name, p in model.named_parameters() if p.requires_grad and name not in decayed
    }


def test_a_model_with_nothing_to_train_is_refused() -> None:
    with pytest.raises(UserError, match="nothing is left to train"):
        build_optimizer(nn.Linear(2, 2).requires_grad_(False), TrainConfig())
