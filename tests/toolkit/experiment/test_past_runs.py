"""A run is recognised by what decides its result: settings, code, and the files it was given."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolkit.config import RunConfig, TrainConfig
from toolkit.experiment import load_experiment, run_experiments
from toolkit.experiment.past_runs import _settings, recorded_wall_times
from toolkit.experiment.past_runs import find_runs as look_for_runs

Cells = Callable[..., dict[str, Any]]


def find_runs(run: Any) -> tuple[Path | None, Path | None]:
    past = look_for_runs(run)
    return past.complete, past.interrupted


def test_runs_of_other_code_or_settings_do_not_count(
    lab: Any, cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = load_experiment(lab.write(a=cells(1), b=cells(2)))
    a, b = (cell.runs[0] for cell in experiment.cells)
    assert find_runs(a) == (None, None)
    run_experiments([experiment])
    assert find_runs(a) == (lab.runs / "0", None)
    (lab.runs / "0" / "summary.json").unlink()
    assert find_runs(a) == (None, lab.runs / "0")
    monkeypatch.setattr("toolkit.experiment.past_runs.code_fingerprint", lambda: "B")
    assert find_runs(a) == (None, None)
    assert find_runs(b) == (None, None)


def test_a_run_older_than_its_data_does_not_count(lab: Any, cells: Cells, tmp_path: Path) -> None:
    data = tmp_path / "reviews.csv"
    data.write_text("text,label")
    experiment = load_experiment(lab.write(a=cells(1, freeze=str(data)), b=cells(2)))
    a, b = (cell.runs[0] for cell in experiment.cells)
    run_experiments([experiment])
    assert find_runs(a)[0] == lab.runs / "0"
    later = (lab.runs / "0" / "config.yaml").stat().st_mtime + 5
    os.utime(data, (later, later))
    assert find_runs(a) == (None, None)
    assert find_runs(b)[0] == lab.runs / "1"


def test_the_newest_run_counts_whatever_it_is_called(lab: Any, cells: Cells) -> None:
    experiment = load_experiment(lab.write(a=cells(1), b=cells(2)))
    run = experiment.cells[0].runs[0]
    command = [sys.executable, str(run.recipe), *run.arguments, "--run-id", "zzz"]
    subprocess.run(command, check=True)
    assert find_runs(run)[0] == lab.runs / "zzz"
    assert recorded_wall_times(run) == []  # it was not started by an experiment
    run_experiments([experiment])
    assert lab.compared[0].paths[0] == lab.runs / "zzz"


def test_names_and_what_is_merely_shown_do_not_make_another_run(lab: Any, cells: Cells) -> None:
    run_experiments([load_experiment(lab.write(a=cells(1), b=cells(2)))])
    for option, value, same in (
        ("title", "another", True),
        ("run_id", "x", True),
        ("tracker", "tensorboard", True),
        ("freeze", "x", False),
        ("train.epochs", 7, False),
        ("layers", [1], False),
    ):
        changed = load_experiment(lab.write(a=cells(1, **{option: value}), b=cells(2)))
        found = find_runs(changed.cells[0].runs[0])[0]
        assert (found == lab.runs / "0") is same, option


def test_how_rows_were_divided_by_memory_does_not_make_another_run() -> None:
    def deciding(**train: Any) -> dict[str, Any]:
        return _settings(RunConfig(train=TrainConfig(**train)))

    asked = deciding(batch_size=32, auto_batch_size=True)
    assert deciding(batch_size=8, accumulation_steps=4, auto_batch_size=True) == asked
    assert deciding(batch_size=16, auto_batch_size=True) != asked
    assert deciding(batch_size=8, accumulation_steps=4) != deciding(batch_size=32)
    by_tokens = deciding(batch_tokens=500, auto_batch_size=True)
    assert deciding(batch_tokens=500, accumulation_steps=4, auto_batch_size=True) == by_tokens
    assert deciding(batch_tokens=600, auto_batch_size=True) != by_tokens


def test_a_configuration_that_cannot_be_read_is_no_run(lab: Any, cells: Cells) -> None:
    experiment = load_experiment(lab.write(a=cells(1), b=cells(2)))
    for name, text in (("empty", ""), ("torn", "seed: [1"), ("binary", "\x00"), ("list", "- 1")):
        (lab.runs / name).mkdir(parents=True)
        (lab.runs / name / "config.yaml").write_text(text)
    assert find_runs(experiment.cells[0].runs[0]) == (None, None)


def test_wall_times_are_kept_and_a_damaged_record_is_none(lab: Any, cells: Cells) -> None:
    experiment = load_experiment(lab.write(a=cells(1), b=cells(2)))
    run_experiments([experiment])
    run = experiment.cells[0].runs[0]
    (seconds,) = recorded_wall_times(run)
    assert 0 < seconds < 10
    for damaged in ("", "[]", '{"seconds": null}', '{"second": 1}'):
        (lab.runs / "0" / "wall_time.json").write_text(damaged)
        assert recorded_wall_times(run) == []
