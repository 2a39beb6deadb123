"""Masked tokens and next sentences of predictions files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from toolkit.errors import UserError
from toolkit.task_scores.pretraining import read, view
from toolkit.task_scores.tasks import TASKS

SUMMARY: dict[str, Any] = {
    "seed": 1,
    "data": {},
    "validation": {"unigram_guess": {"value": 0.125, "n": 16}},
}


OTHER_MASKS = SUMMARY | {"data": {"masking": {"validation_sha256": "other"}}}


def write(folder: Path, name: str = "run", **columns: Any) -> Path:
    path = folder / name / "predictions" / "validation.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {"id": list("abc"), "text": ["很好", "房间干净", "再来一次吧"], "masked": [4, 10, 2],
             "loss_sum": [8.0, 20.0, 0.5],
             "correct": [1, 5, 2], "next_correct": [1, 0, 1]}  # fmt: skip
    kept = {name: value for name, value in (table | columns).items() if value is not None}
    pyarrow.parquet.write_table(pyarrow.table(kept), path)
    return path


def test_texts_by_hand(tmp_path: Path) -> None:
    assert TASKS["pretraining"].split == "validation"
    shown = view("pretraining", [read(write(tmp_path), SUMMARY)], [SUMMARY])
    values = {
        measure.key: float(measure.score(shown.statistics(measure.key, 0).sum(0)))
        for measure in shown.measures
    }
    assert values == {
        "masked_accuracy": 8 / 16, "masked_loss": 28.5 / 16, "next_sentence_accuracy": 2 / 3,
    }  # fmt: skip
    assert [measure.higher_is_better for measure in shown.measures] == [True, False, True]
    assert [measure.counts_right for measure in shown.measures] == [False, False, True]
    assert shown.quality.tolist() == [[0.25, 0.5, 1]]
    assert shown.right is not None
    assert shown.right.tolist() == [[True, False, True]]
    assert shown.loss is not None
    assert shown.loss.tolist() == [[2, 2, 0.25]]
    assert shown.answers[0][1] == "5 of 10 masked tokens; next sentence wrong"
    assert shown.truth == ["4 masked tokens", "10 masked tokens", "2 masked tokens"]
    assert shown.chance == ("always saying the most frequent token", 0.125)
    [by_length] = shown.breakdowns
    assert (by_length.names, by_length.values.tolist()) == (["2", "4", "5"], [[0.25], [0.5], [1]])


def test_other_masks_leave_next_sentences(tmp_path: Path) -> None:
    runs = [read(write(tmp_path), SUMMARY), read(write(tmp_path, "b", masked=[4, 9, 2]), SUMMARY)]
    shown = view("pretraining", runs, [SUMMARY, OTHER_MASKS])
    assert [measure.key for measure in shown.measures] == ["next_sentence_accuracy"]
    assert any("masked different numbers of tokens" in fact for fact in shown.facts)
    assert any("asked different things (masks, pairs)" in fact for fact in shown.facts)
    assert shown.chance is None


def test_a_file_without_texts_is_told_by_its_ids(tmp_path: Path) -> None:
    found = read(write(tmp_path, text=None), SUMMARY)
    assert found.inputs is None
    assert found.truth == ["a", "b", "c"]
    assert view("pretraining", [found], [SUMMARY]).breakdowns == []


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"correct": [1, 11, 2]}, "row 1: 'correct' is 11, expected at most 10"),
        ({"next_correct": [1, 0, 2]}, "row 2: 'next_correct' is 2, expected at most 1"),
        ({"masked": [4, -1, 2]}, "row 1: 'masked' is -1"),
        ({"loss_sum": [1.0, float("nan"), 2.0]}, "row 1: 'loss_sum' is nan"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, columns: dict[str, Any], expected: str) -> None:
    path = write(tmp_path, **columns)
    with pytest.raises(UserError) as raised:
        read(path, SUMMARY)
    assert str(path) in str(raised.value)
    assert expected in str(raised.value)
