"""Which rows every optimizer step sees: a pure function of seed, epoch and global batch.

Nothing here keeps state, so a resumed run needs only its step number to go on with the same rows,
and the rows of a step do not depend on how many processes share them.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from toolkit.errors import UserError

# Texts are sorted by length within this many global batches, then the batches are shuffled: nearly
# all padding is gone, while a batch still mixes rows from the whole epoch.
SORT_SPAN = 50

Collate = Callable[[list[dict[str, Any]]], dict[str, torch.Tensor]]


def plan_epoch(
    rows: int, global_batch: int, seed: int, epoch: int, lengths: np.ndarray | None = None
) -> list[np.ndarray]:
    """Row numbers of every optimizer step of one epoch; each row exactly once.

    Args:
        rows: number of training examples.
        global_batch: examples per optimizer step over all processes.
        lengths: tokens per row; when given, rows of similar length share a step.

    Returns:
        One array of row numbers per step. Only the last may be shorter than ``global_batch``.
    """
    generator = np.random.default_rng([seed, epoch])
    order = generator.permutation(rows)
    if lengths is not None:
        order = _sort_within_spans(order, lengths, SORT_SPAN * global_batch)
    windows = [order[start : start + global_batch] for start in range(0, rows, global_batch)]
    if lengths is not None:
        full = len(windows) - (rows % global_batch != 0)
        windows = [windows[i] for i in generator.permutation(full)] + windows[full:]
    return windows


def plan_epoch_by_tokens(
    lengths: np.ndarray, limit: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """Row numbers of every optimizer step of one epoch, as many rows a step as `limit` allows.

    Rows are sorted by length and cut into steps, which are then shuffled. Rows of equal lengths
    change places from epoch to epoch; where the cuts fall does not depend on that, so that every
    epoch has the same number of steps.

    Args:
        lengths: [rows, sequences]: tokens of every sequence that is padded for itself (source and
            target of a translation).
        limit: tokens per step, padding included: rows times the longest of every sequence.

    Returns:
        One array of row numbers per step; each row exactly once.

    Raises:
        UserError: one row alone is longer than that.
    """
    longest = int(lengths.sum(1).max())
    if longest > limit:
        row = int(lengths.sum(1).argmax())
        raise UserError(
            f"--train.batch_tokens {limit}: training row {row} alone has {longest} tokens. Allow "
            "more tokens, or cut texts with --max_length."
        )
    generator = np.random.default_rng([seed, epoch])
    order = generator.permutation(len(lengths))
    order = order[np.lexsort((*lengths[order].T, lengths[order].sum(1)))]
    cuts, start, widest = [0], 0, lengths[order[0]]
    for position, row in enumerate(order):
        wider = np.maximum(widest, lengths[row])
        if int(wider.sum()) * (position - start + 1) > limit:
            cuts.append(position)
            start, wider = position, lengths[row]
        widest = wider
    steps = [order[a:b] for a, b in pairwise([*cuts, len(order)])]
    return [steps[i] for i in generator.permutation(len(steps))]


def split_window(
    window: np.ndarray, processes: int, micro_batch: int, lengths: np.ndarray | None = None
) -> list[list[np.ndarray]]:
    """Divide the rows of one optimizer step among processes and forward passes.

    Every process gets the same number of forward passes (collective operations need that); in a
    short last step some of them may be empty.

    Returns:
        ``parts[process][forward_pass]``: arrays of at most ``micro_batch`` rows.
    """
    if lengths is not None:
        window = window[np.argsort(lengths[window], kind="stable")]
    passes = -(-len(window) // (processes * micro_batch))
    chunks = np.array_split(window, passes * processes)
    return [chunks[process::processes] for process in range(processes)]


def evaluation_batches(
    rows: int, batch_size: int, process: int, processes: int, lengths: np.ndarray | None = None
) -> list[np.ndarray]:
    """Batches of one process for a pass over a data set; longest first, no row twice.

    Every process gets the same number of batches; some at the end may be empty.
    """
    order = np.arange(rows)
    if lengths is not None:
        order = np.argsort(-lengths, kind="stable")
    batches = [order[start : start + batch_size] for start in range(0, rows, batch_size)]
    batches += [order[:0]] * (-len(batches) % processes)
    return batches[process::processes]


def row_lengths(data: Any) -> np.ndarray | None:
    """The ``length`` column (tokens per row) of a data set, or None where it has none."""
    if "length" not in data.column_names:
        return None
    return np.asarray(data.select_columns("length").with_format("numpy")[:]["length"])


def padded_lengths_if_any(data: Any) -> np.ndarray | None:
    """As `padded_lengths`; None where the rows have no lengths, such as images."""
    return padded_lengths(data) if "length" in data.column_names else None


def padded_lengths(data: Any) -> np.ndarray:
    """[rows, sequences]: tokens of every sequence of a row that is padded for itself.

    Raises:
        UserError: the rows have no lengths.
    """
    names = [n for n in ("source_length", "target_length") if n in data.column_names] or ["length"]
    if names[0] not in data.column_names:
        raise UserError("--train.batch_tokens needs rows that have a length in tokens.")
    columns = data.select_columns(names).with_format("numpy")[:]
    return np.stack([columns[name] for name in names], axis=1)


def padded_sizes(batches: Sequence[np.ndarray], lengths: np.ndarray | None) -> np.ndarray:
    """[batches]: positions that batches of these rows have, padding included.

    Args:
        batches: row numbers of each.
        lengths: `padded_lengths` of all rows; None counts rows.
    """
    if lengths is None:
        return np.array([len(rows) for rows in batches])
    return np.array(
        [len(rows) * lengths[rows].max(0).sum() if len(rows) else 0 for rows in batches]
    )


def padded_tokens(batch: Mapping[str, torch.Tensor], encoder_decoder: bool = False) -> int:
    """Positions of a batch that a model computes, padding included; 0 for images.

    Args:
        encoder_decoder: the labels are a decoder's, and padded for themselves.
    """
    if "input_ids" not in batch:
        return 0
    decoder = batch.get("decoder_input_ids", batch["labels"]).numel() if encoder_decoder else 0
    return batch["input_ids"].numel() + decoder


class Rows(Dataset):
    """A data set whose rows also carry their number (``index``) and the current ``epoch``."""

    def __init__(self, data: Any, epoch: int = 0) -> None:
        self.data = data
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[dict[str, Any]]:
        """Fetch a whole batch at once: one Arrow read instead of one per row."""
        columns = self.data[[int(i) for i in indices]]
        names = list(columns)
        return [
            {name: columns[name][k] for name in names} | {"index": int(i), "epoch": self.epoch}
            for k, i in enumerate(indices)
        ]


def load_batches(
    rows: Rows, batches: Sequence[np.ndarray], collate: Collate, workers: int = 0, pin: bool = False
) -> DataLoader:
    """Iterate over collated batches in the given order.

    The loader gets a generator of its own: PyTorch's default would draw from the global random
    state whenever an iterator starts, and a resumed run would continue with other dropout masks.
    """
    return DataLoader(
        rows,
        batch_sampler=[[int(i) for i in batch] for batch in batches],
        collate_fn=collate,
        num_workers=workers,
        pin_memory=pin,
        generator=torch.Generator().manual_seed(rows.epoch),
        worker_init_fn=_outlive_interruption,
        # Not by a server, which Python may prefer: its children see that server and not the
        # process that trains, so that after a SIGKILL they would wait for it for ever.
        multiprocessing_context="fork" if workers and sys.platform == "linux" else None,
    )


def _outlive_interruption(worker: int) -> None:
    """Leave Ctrl-C to the process that trains.

    A terminal sends it to all processes of a command, a scheduler its warning likewise: one that
    finishes its step and saves still needs what its workers prepare. They end when it does.
    """
    for name in ("SIGINT", "SIGUSR1"):
        if hasattr(signal, name):  # Windows has no SIGUSR1
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def _sort_within_spans(order: np.ndarray, lengths: np.ndarray, span: int) -> np.ndarray:
    pieces = [order[start : start + span] for start in range(0, len(order), span)]
    # Longest first, so that the short last batch of a span holds its shortest texts.
    return np.concatenate([p[np.argsort(-lengths[p], kind="stable")] for p in pieces])
