"""Which rows a step sees: every row once, the same rows for any number of processes."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit import batching
from toolkit.batching import (
    Rows,
    evaluation_batches,
    load_batches,
    padded_lengths,
    plan_epoch,
    plan_epoch_by_tokens,
    row_lengths,
    split_window,
)
from toolkit.errors import UserError

ROWS = st.integers(1, 300)
SMALL = st.integers(1, 9)
SEED = st.integers(0, 2**32 - 1)


def lengths_for(rows: int, seed: int) -> np.ndarray:
    """Long-tailed, like texts."""
    return np.random.default_rng(seed).geometric(0.05, rows)


@settings(deadline=None)
@given(ROWS, st.integers(1, 64), SEED, st.integers(0, 50), st.booleans())
def test_every_row_once_per_epoch(
    rows: int, global_batch: int, seed: int, epoch: int, grouped: bool
) -> None:
    lengths = lengths_for(rows, 0) if grouped else None
    windows = plan_epoch(rows, global_batch, seed, epoch, lengths)
    assert sorted(np.concatenate(windows)) == list(range(rows))
    assert len(windows) == math.ceil(rows / global_batch)
    assert [len(w) for w in windows[:-1]] == [global_batch] * (len(windows) - 1)
    assert len(windows[-1]) == (rows - 1) % global_batch + 1
    again = plan_epoch(rows, global_batch, seed, epoch, lengths)
    assert all((a == b).all() for a, b in zip(windows, again, strict=True))


@settings(deadline=None)
@given(ROWS, SMALL, SMALL, SMALL, st.booleans())
def test_any_split_of_a_step_covers_its_rows_once(
    rows: int, processes: int, micro_batch: int, accumulation: int, grouped: bool
) -> None:
    lengths = lengths_for(rows, 1) if grouped else None
    global_batch = processes * micro_batch * accumulation
    for window in plan_epoch(rows, global_batch, 3, 0, lengths):
        parts = split_window(window, processes, micro_batch, lengths)
        assert len(parts) == processes
        passes = {len(chunks) for chunks in parts}
        assert len(passes) == 1  # collectives match
        assert passes.pop() <= accumulation
        chunks = [chunk for share in parts for chunk in share]
        assert all(len(chunk) <= micro_batch for chunk in chunks)
        assert sorted(np.concatenate(chunks)) == sorted(window)


@settings(deadline=None)
@given(ROWS, SEED)
def test_steps_have_the_same_rows_for_1_2_and_4_processes(rows: int, seed: int) -> None:
    lengths = lengths_for(rows, 2)
    steps = []
    for processes, micro_batch, accumulation in [(1, 8, 1), (2, 4, 1), (4, 1, 2), (1, 2, 4)]:
        windows = plan_epoch(rows, processes * micro_batch * accumulation, seed, 1, lengths)
        split = [split_window(w, processes, micro_batch, lengths) for w in windows]
        steps.append(
            [sorted(np.concatenate([c for share in parts for c in share])) for parts in split]
        )
    assert steps[0] == steps[1] == steps[2] == steps[3]


def test_epochs_and_seeds_differ_and_both_are_shuffled() -> None:
    for lengths in (None, lengths_for(200, 3)):
        orders = [
            tuple(np.concatenate(plan_epoch(200, 8, seed, epoch, lengths)))
            for seed, epoch in [(0, 0), (0, 1), (0, 2), (1, 0)]
        ]
        assert len({*orders, tuple(range(200))}) == 5


def padded_tokens(windows: list[np.ndarray], lengths: np.ndarray, micro_batch: int) -> int:
    total = 0
    for window in windows:
        for chunk in split_window(window, 1, micro_batch, lengths)[0]:
            total += len(chunk) * int(lengths[chunk].max())
    return total


def test_grouping_by_length_removes_nearly_all_padding() -> None:
    lengths = lengths_for(4000, 4)
    shuffled = padded_tokens(plan_epoch(4000, 16, 0, 0), lengths, 16)
    grouped = padded_tokens(plan_epoch(4000, 16, 0, 0, lengths), lengths, 16)
    real = int(lengths.sum())
    assert shuffled > 2.5 * real  # what random batches cost
    assert grouped < 1.1 * real


def test_grouping_does_not_order_the_epoch_by_length() -> None:
    lengths = lengths_for(4000, 5)
    means = [lengths[w].mean() for w in plan_epoch(4000, 16, 0, 0, lengths)]
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.2


@settings(deadline=None)
@given(ROWS, st.integers(1, 70), SMALL, st.booleans())
def test_evaluation_sees_every_row_once_with_equal_passes(
    rows: int, batch_size: int, processes: int, with_lengths: bool
) -> None:
    lengths = lengths_for(rows, 6) if with_lengths else None
    shares = [
        evaluation_batches(rows, batch_size, rank, processes, lengths) for rank in range(processes)
    ]
    assert len({len(share) for share in shares}) == 1
    batches = [batch for share in shares for batch in share]
    assert all(len(batch) <= batch_size for batch in batches)
    assert sorted(np.concatenate(batches)) == list(range(rows))
    if lengths is not None:  # the longest first, so that too little memory shows at once
        assert lengths[shares[0][0][0]] == lengths.max()


def test_loaded_rows_carry_their_number_and_leave_the_global_random_state_alone() -> None:
    data = datasets.Dataset.from_dict({"text": ["a", "bb", "ccc"], "length": [1, 2, 3]})
    assert list(row_lengths(data)) == [1, 2, 3]
    assert row_lengths(data.remove_columns("length")) is None

    def collate(rows: list[dict]) -> dict[str, torch.Tensor]:
        assert all(len(row["text"]) == row["index"] + 1 for row in rows)
        assert {row["epoch"] for row in rows} == {7}
        return {"index": torch.tensor([row["index"] for row in rows])}

    before = torch.get_rng_state()
    loader = load_batches(Rows(data, epoch=7), [np.array([2, 0]), np.array([1])], collate)
    assert [batch["index"].tolist() for batch in loader] == [[2, 0], [1]]
    assert torch.equal(torch.get_rng_state(), before)
    assert Rows(data)[1] == {"text": "bb", "length": 2, "index": 1, "epoch": 0}


class Numbers(torch.utils.data.Dataset):
    """Rows that carry the process that fetches them."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, rows: list[int]) -> dict[str, list[int]]:
        return {"number": rows, "process": [os.getpid()] * len(rows)}


def gather(rows: list[dict[str, int]]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor([row[name] for row in rows]) for name in ("number", "process")}


@pytest.mark.parametrize(
    ("number", "handler"),
    [(signal.SIGINT, signal.default_int_handler), (signal.SIGUSR1, signal.SIG_DFL)],
)
def test_workers_go_on_when_all_processes_of_a_command_are_interrupted(
    number: signal.Signals, handler: Any, keep_handlers: None
) -> None:
    """As by Ctrl-C in a terminal, while the process that trains finishes its step."""
    signal.signal(number, handler)  # which workers inherit
    batches = [np.array([row, row + 1]) for row in range(0, 40, 2)]
    loader = iter(load_batches(Rows(Numbers()), batches, gather, workers=2))
    first = [next(loader), next(loader)]  # both work
    workers = [worker.pid for worker in loader._workers]
    assert {p for batch in first for p in batch["process"].tolist()} == set(workers)
    for process in workers:
        os.kill(process, number)
    rest = list(loader)
    found = torch.cat([batch["number"] for batch in [*first, *rest]])
    assert found.tolist() == list(range(40))
    assert {p for batch in rest for p in batch["process"].tolist()} == set(workers)


TRAINING = """
import multiprocessing, sys, time
import numpy as np, torch
from toolkit.batching import Rows, load_batches

class Numbers(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, rows): return {"row": rows}

def gather(rows): return {"row": torch.tensor([row["row"] for row in rows])}

if __name__ == "__main__":
    multiprocessing.set_start_method("forkserver")
    loader = iter(load_batches(Rows(Numbers()), [np.array([row]) for row in range(4)], gather, 2))
    next(loader)
    print(*(worker.pid for worker in loader._workers), flush=True)
    time.sleep(60)
"""


@pytest.mark.slow  # a worker looks every 5 seconds
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")
def test_workers_end_with_a_process_that_is_killed(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "training.py").write_text(TRAINING)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "training.py"], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(repository)},
    )  # fmt: skip
    assert process.stdout is not None
    workers = [int(word) for word in process.stdout.readline().split()]
    assert len(workers) == 2
    assert all(Path(f"/proc/{worker}").exists() for worker in workers)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def keep_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGUSR1)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def padded_cost(lengths: np.ndarray) -> int:
    return len(lengths) * int(lengths.max(0).sum())


@settings(deadline=None)
@given(ROWS, st.integers(1, 2), st.integers(0, 400), SEED, st.integers(0, 50))
def test_steps_by_tokens_hold_every_row_once_within_the_limit(
    rows: int, sequences: int, more: int, seed: int, epoch: int
) -> None:
    lengths = np.random.default_rng(rows).geometric(0.1, (rows, sequences))
    limit = int(lengths.sum(1).max()) + more
    plan = plan_epoch_by_tokens(lengths, limit, seed, epoch)
    assert sorted(np.concatenate(plan)) == list(range(rows))
    assert all(padded_cost(lengths[step]) <= limit for step in plan)
    assert len(plan) == len(plan_epoch_by_tokens(lengths, limit, seed + 1, epoch + 1))
    again = plan_epoch_by_tokens(lengths, limit, seed, epoch)
    assert all((a == b).all() for a, b in zip(plan, again, strict=True))


@settings(deadline=None)
@given(ROWS, SEED, SMALL)
def test_steps_by_tokens_are_shared_by_processes_and_passes(
    rows: int, seed: int, accumulation: int
) -> None:
    lengths = np.random.default_rng(3).geometric(0.1, (rows, 2))
    for window in plan_epoch_by_tokens(lengths, 300, seed, 0):
        for processes in (1, 2):
            micro_batch = -(-len(window) // (processes * accumulation))
            parts = split_window(window, processes, micro_batch, lengths.sum(1))
            assert {len(share) for share in parts} == {len(parts[0])}
            assert len(parts[0]) <= accumulation
            chunks = [chunk for share in parts for chunk in share]
            assert sorted(np.concatenate(chunks)) == sorted(window)
            assert sum(padded_cost(lengths[c]) for c in chunks if len(c)) <= 300


def test_steps_by_tokens_are_full_and_shuffled_anew_in_every_epoch() -> None:
    lengths = np.random.default_rng(4).integers(1, 30, (2000, 2))
    plan = plan_epoch_by_tokens(lengths, 1000, 0, 0)
    assert np.mean([padded_cost(lengths[step]) for step in plan]) > 900
    assert np.mean([lengths[step].sum() for step in plan]) > 650  # the rest is padding
    means = [lengths[step].mean() for step in plan]
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.4
    orders = {
        tuple(np.concatenate(plan_epoch_by_tokens(lengths, 1000, seed, epoch)))
        for seed, epoch in [(0, 0), (0, 1), (1, 0)]
    }
    assert len(orders) == 3
    few = np.array([[3, 3]] * 40)  # equal rows change their company
    assert {frozenset(s) for s in map(tuple, plan_epoch_by_tokens(few, 60, 0, 0))} != {
        frozenset(s) for s in map(tuple, plan_epoch_by_tokens(few, 60, 0, 1))
    }


def test_a_row_longer_than_a_step_is_named() -> None:
    with pytest.raises(UserError, match="training row 1 alone has 70 tokens"):
        plan_epoch_by_tokens(np.array([[3, 4], [30, 40]]), 60, 0, 0)


def test_padded_lengths_are_those_of_every_sequence() -> None:
    data = datasets.Dataset.from_dict({"length": [5, 7], "source_length": [2, 3]})
    data = data.add_column("target_length", [3, 4])
    assert padded_lengths(data).tolist() == [[2, 3], [3, 4]]
    assert padded_lengths(data.select_columns("length")).tolist() == [[5], [7]]
    with pytest.raises(UserError, match="batch_tokens"):
        padded_lengths(data.select_columns("source_length").rename_column("source_length", "n"))


def test_padded_tokens_are_the_positions_that_are_computed() -> None:
    ids, labels = torch.zeros(3, 7), torch.zeros(3, 5)
    count = batching.padded_tokens
    assert count({"input_ids": ids, "labels": ids}) == 21  # labels of the same places
    assert count({"input_ids": ids, "labels": labels}, encoder_decoder=True) == 21 + 15
    decoder = {"input_ids": ids, "decoder_input_ids": labels[:, :4], "labels": labels}
    assert count(decoder, encoder_decoder=True) == 21 + 12
    assert count({"pixel_values": torch.zeros(3, 3, 4, 4), "labels": labels[:, 0]}) == 0
