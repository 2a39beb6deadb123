"""Bytes a model brings with it, and what of the memory is left."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from toolkit.config import TrainConfig
from toolkit.training import memory
from toolkit.training.memory import available_memory, model_memory
from toolkit.training.optimizers import build_optimizer

MIB = 2**20


class Tied(nn.Module):
    """120 + 30 + 10 parameters, of which the 120 stand twice; a norm with buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(12, 10)
        self.head = nn.Linear(10, 12, bias=False)
        self.head.weight = self.embed.weight
        self.other = nn.Linear(3, 10)
        self.norm = nn.BatchNorm1d(10, affine=False)


def test_shared_weights_count_once_and_frozen_ones_have_no_gradient() -> None:
    model = Tied()
    model.other.bias.requires_grad_(False)
    found = model_memory(model, TrainConfig(ema=0.9), processes=2)
    buffers = 4 * 20 + 8  # mean and variance, and a count of int64
    assert found.weights == 4 * 160 + buffers
    assert found.gradients == found.buckets == 4 * 150
    assert found.optimizer == 8 * 150
    assert found.average == 4 * (150 + 20)
    assert found.added_by_training == 4 * (150 * 5 + 20)
    assert found.checkpoint == found.weights + 8 * 150 + found.average


@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_the_optimizer_keeps_as_much_as_was_said(name: str) -> None:
    model = nn.Linear(50, 50)
    train = TrainConfig(optimizer=name)  # type: ignore[arg-type]
    optimizer = build_optimizer(model, train)
    model(torch.randn(2, 50)).sum().backward()
    optimizer.step()
    kept = sum(
        value.nbytes
        for state in optimizer.state.values()
        for value in state.values()
        if torch.is_tensor(value) and value.ndim
    )
    assert kept == model_memory(model, train, 1).optimizer


def test_memory_is_shared_by_the_processes_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_left_in_groups", lambda root: [300 * MIB])
    assert available_memory(torch.device("cpu")) == 300 * MIB
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    assert available_memory(torch.device("cpu")) == 100 * MIB


def test_the_limits_of_control_groups(tmp_path: Path) -> None:
    group = tmp_path / "sys/fs/cgroup/batch/job"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/old\n0::/batch/job\n")
    (group / "memory.max").write_text("max\n")
    parent = group.parent
    (parent / "memory.max").write_text(f"{1000 * MIB}\n")
    (parent / "memory.current").write_text(f"{700 * MIB}\n")
    (parent / "memory.stat").write_text(f"anon 5\ninactive_file {200 * MIB}\n")
    assert memory._left_in_groups(tmp_path) == [500 * MIB]


def test_no_control_groups(tmp_path: Path) -> None:
    assert memory._left_in_groups(tmp_path) == []
