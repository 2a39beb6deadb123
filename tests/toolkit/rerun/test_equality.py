"""Results are equal to the last bit, or the largest difference is named."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from toolkit.errors import UserError
from toolkit.rerun import compare_runs
from toolkit.rerun.weights import compare_weights

from .conftest import EVENTS, SUMMARY

Write = Callable[..., Path]


def words(then: Path, now: Path) -> dict[str, str]:
    return {one.what: one.in_words for one in compare_runs(then, now)}


def test_equal_runs_are_equal_in_everything_but_time(write_run: Write) -> None:
    then = write_run("a")
    later = [event | {"seconds": 9.0, "joules": 3.0} for event in EVENTS]
    now = write_run("b", events=later, summary={"training": {"seconds": 7.0}})
    compared = compare_runs(then, now)
    assert [one.what for one in compared] == [
        "data", "losses and evaluations", "weights", "predictions on test", "figures of validation",
        "figures of test",
    ]  # fmt: skip
    assert all(one.equal for one in compared)
    assert {one.in_words for one in compared} == {"equal to the last bit"}


def test_each_difference_is_found_where_it_is(write_run: Write) -> None:
    then = write_run("a")
    test = copy.deepcopy(SUMMARY["test"])
    test["accuracy"]["interval"][1] = 0.5
    events = copy.deepcopy(EVENTS)
    events[1]["loss"] = math.nextafter(0.5, 1)  # the next float64
    events[0]["loss"] = 0.625
    now = write_run(
        "b",
        summary={"test": test, "data": {"hashes": {"train": "a", "test": "x", "new": "y"}}},
        events=events,
        tensors={
            "w": torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.5, 5.25]]),
            "b": torch.tensor([0.0, 1.0]),
        },
        rows=[{"id": "x", "p": [0.25, 0.75]}, {"id": "y", "p": [0.375, 0.625]}],
    )
    assert words(then, now) == {
        "data": "not equal: other rows in test, new",
        "losses and evaluations": "largest difference 0.125: step 1, loss: 0.75 then, 0.625 now",
        "weights": "largest difference 0.5: model/model.safetensors: w",
        "predictions on test": "largest difference 0.125: row 2, p.0: 0.5 then, 0.375 now",
        "figures of validation": "equal to the last bit",
        "figures of test": ("largest difference 0.25: accuracy.interval.1: 0.75 then, 0.5 now"),
    }


def test_the_last_bit_of_a_loss_counts(write_run: Write) -> None:
    events = copy.deepcopy(EVENTS)
    events[1]["loss"] = math.nextafter(0.5, 1)
    found = words(write_run("a"), write_run("b", events=events))
    assert found["losses and evaluations"].startswith("largest difference 1.11e-16: step 2, loss")


@pytest.mark.parametrize(
    ("now", "what", "said"),
    [
        (
            {"events": EVENTS[:2]}, "losses and evaluations",
            "not equal: step 2, step (2): 2 then, nothing now",
        ),
        ({"rows": [{"id": "x", "p": [0.25, 0.75]}]}, "predictions on test",
         "not equal: 2 rows then, 1 now"),
        (
            {"rows": [{"id": "x", "p": [0.25, 0.75]}, {"id": "z", "p": [0.5, 0.5]}]},
            "predictions on test", "not equal: row 2, id: y then, z now",
        ),
        ({"tensors": {"w": torch.zeros(2, 3)}}, "weights",
         "not equal: model/model.safetensors: other tensors: b"),
        (
            {"tensors": {"w": torch.zeros(2, 3).half(), "b": torch.zeros(2)}}, "weights",
            "not equal: model/model.safetensors: w: [2, 3] float32 then, [2, 3] float16 now",
        ),
    ],
)  # fmt: skip
def test_results_of_other_kinds_have_no_difference(
    write_run: Write, now: dict[str, Any], what: str, said: str
) -> None:
    compared = {one.what: one for one in compare_runs(write_run("a"), write_run("b", **now))}
    assert compared[what].in_words == said
    assert compared[what].as_json()["largest_difference"] is None
    assert not compared[what].equal


def test_weights_are_compared_as_bits(write_run: Write) -> None:
    nan, zero = torch.tensor([math.nan, 1.0]), torch.tensor([0.0])
    tensors = {"n": nan, "z": zero}
    same = write_run("a", tensors=tensors), write_run("b", tensors=tensors)
    file = same[1] / "model" / "model.safetensors"
    save_file(tensors, file, metadata={"format": "pt"})  # another file
    assert compare_weights(*same) == (None, None)
    other = write_run("c", tensors={"n": nan, "z": -zero})
    difference, where = compare_weights(same[0], other)  # type: ignore[misc]
    assert (difference, where) == (0.0, "model/model.safetensors: z")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.integers(0, 6))
def test_the_largest_difference_is_numpys(
    tmp_path: Path, seed: int, changed: int, columns: int
) -> None:
    generator = np.random.default_rng(seed)
    then = {f"t{i}": generator.normal(size=(3, columns + 1)) for i in range(4)}
    now = {name: value.copy() for name, value in then.items()}
    for i in range(changed):
        now[f"t{i}"] += generator.normal(size=(3, columns + 1))
    for name, tensors in (("a", then), ("b", now)):
        folder = tmp_path / name / "adapter"
        folder.mkdir(parents=True, exist_ok=True)
        save_file({k: torch.from_numpy(v) for k, v in tensors.items()}, folder / "x.safetensors")
    largest = {name: float(np.abs(then[name] - now[name]).max()) for name in then}
    found = compare_weights(tmp_path / "a", tmp_path / "b")
    if changed == 0:
        assert found == (None, None)
    else:
        name = max(largest, key=lambda one: largest[one])
        assert found == (largest[name], f"adapter/x.safetensors: {name}")


def test_lines_of_one_step_are_told_apart(write_run: Write) -> None:
    """Classifiers to choose from are all logged at step 0."""
    events = [{"step": 0, "C": c, "validation": {"accuracy": c / 8}} for c in (1.0, 2.0, 4.0)]
    other = copy.deepcopy(events)
    other[2]["validation"]["accuracy"] = 0.25
    found = words(write_run("a", events=events), write_run("b", events=other))
    assert found["losses and evaluations"] == (
        "largest difference 0.25: step 0, validation.accuracy (3): 0.5 then, 0.25 now"
    )


def test_what_neither_run_has_is_left_out(write_run: Write) -> None:
    runs = write_run("a"), write_run("b")
    for run in runs:  # a classic baseline: no safetensors
        (run / "model" / "model.safetensors").unlink()
    assert "weights" not in words(*runs)
    (runs[0] / "predictions" / "test.parquet").unlink()
    assert words(*runs)["predictions on test"] == "not equal: there are none then"


def test_damaged_files_are_named(write_run: Write) -> None:
    runs = write_run("a"), write_run("b")
    (runs[1] / "model" / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(UserError, match=r"model\.safetensors is damaged"):
        compare_runs(*runs)
    (runs[1] / "metrics.jsonl").write_text('{"step": 1}\n{"st')
    with pytest.raises(UserError, match=r"metrics\.jsonl is damaged"):
        compare_runs(*runs)


def test_json_has_numbers(write_run: Write) -> None:
    events = copy.deepcopy(EVENTS)
    events[0]["loss"] = 1.0
    compared = compare_runs(write_run("a"), write_run("b", events=events))
    said = json.loads(json.dumps([one.as_json() for one in compared]))
    assert said[1] == {
        "what": "losses and evaluations", "equal": False, "largest_difference": 0.25,
        "where": "step 1, loss: 0.75 then, 1.0 now",
    }  # fmt: skip
