"""Batches: every example once, the longest first, never more tokens than allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from toolkit.prediction.batches import BatchLimits, predict_sorted, sorted_batches


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 9), st.integers(1, 90))
def test_limits_are_kept_and_used(lengths: list[int], rows: int, tokens: int) -> None:
    batches = sorted_batches(lengths, rows, tokens)
    order = [int(row) for batch in batches for row in batch]
    assert sorted(order) == list(range(len(lengths)))
    sizes = [lengths[row] for row in order]
    assert sizes == sorted(sizes, reverse=True)
    for number, batch in enumerate(batches):
        longest = max(lengths[batch[0]], 1)  # what is empty counts as one token
        assert len(batch) <= rows
        assert len(batch) == 1 or len(batch) * longest <= tokens
        if number + 1 < len(batches):  # one more would have been too many
            assert len(batch) == rows or (len(batch) + 1) * longest > tokens


def test_results_and_progress_of_rows_in_several_parts() -> None:
    parts, done = [3, 1, 2, 2, 9], []

    def collate(examples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        return {"x": torch.tensor([example["x"] for example in examples])}

    found = predict_sorted(
        torch.nn.Linear(1, 1),
        [{"x": length} for length in parts],
        lengths=parts,
        collate=collate,
        compute=lambda _, batch: {"double": 2 * batch["x"], "text": list(map(str, batch["x"]))},
        limits=BatchLimits(2),
        advance=done.append,
        owners=[0, 0, 1, 2, 1],
    )
    assert np.array_equal(found["double"], [6, 2, 4, 4, 18])
    assert found["text"][4] == "tensor(9)"
    # Batches: parts 4 and 0, then 2 and 3 (rows 1 and 2 are done), then 1 (row 0).
    assert done == [0, 2, 1]
