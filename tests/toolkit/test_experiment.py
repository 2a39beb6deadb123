"""An experiment runs what is missing, resumes what was interrupted, and outlives what fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import toolkit.experiment
from toolkit.errors import UserError
from toolkit.experiment import find_runs, run_experiment
from toolkit.experiment_file import load_experiment

# A recipe without training: it writes its configuration, and a summary unless told to break.
RECIPE = '''
import json, sys
from dataclasses import dataclass
from pathlib import Path
from toolkit.config import RunConfig, save_config
from toolkit.entry import run_recipe

@dataclass
class Config(RunConfig):
    """A recipe that is done at once."""

    outcome: str = "complete"
    """complete, fails or stops (the first time)."""
    freeze: str | None = "something"
    """A text or null."""
    layers: list[int] | None = None
    """A list."""

def main(invocation):
    config, folder = invocation.config, invocation.resume_from
    parent = Path(config.output_dir) / "fake"
    with (Path(config.output_dir).parent / "calls").open("a") as calls:
        calls.write(json.dumps(sys.argv[1:]) + "\\n")
    if folder is None:
        folder = parent / (config.run_id or str(len(list(parent.glob("*")))))
        folder.mkdir(parents=True)
        (folder / "environment.json").write_text(json.dumps({"code": "A"}))
        save_config(config, folder / "config.yaml")
        if config.outcome == "stops":
            sys.exit(3)
    if config.outcome == "fails":
        sys.exit(1)
    (folder / "summary.json").write_text("{}")

if __name__ == "__main__":
    run_recipe(main, Config, __file__)
'''


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An experiment of two cells in a folder of its own; what was compared is recorded."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes" / "experiments").mkdir(parents=True)
    (tmp_path / "recipes" / "fake.py").write_text(RECIPE)
    sys.modules.pop("recipe_fake", None)
    monkeypatch.setattr(toolkit.experiment, "code_fingerprint", lambda: "A")
    compared: list[list[Path]] = []
    monkeypatch.setattr(
        toolkit.experiment,
        "_compare",
        lambda experiment, folders, output, examples: compared.append(
            [folders[name] for name in experiment.compare if name in folders]
        ),
    )

    def write(**cells: dict[str, Any]) -> Path:
        file = tmp_path / "recipes" / "experiments" / "lab.yaml"
        for cell in cells.values():
            cell.setdefault("recipe", "fake")
            cell.setdefault("options", {}).setdefault("output_dir", str(tmp_path / "runs"))
        content = {"output": "report", "cells": cells, "compare": list(cells)}
        file.write_text(json.dumps(content))  # JSON is YAML
        return file

    def calls() -> list[list[str]]:
        file = tmp_path / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    return SimpleNamespace(write=write, calls=calls, compared=compared, runs=tmp_path / "runs/fake")


def cell(seed: int, outcome: str = "complete", **options: Any) -> dict[str, Any]:
    return {"options": {"seed": seed, "outcome": outcome, **options}}


def test_complete_cells_are_not_run_twice(lab: Any) -> None:
    experiment = load_experiment(lab.write(a=cell(1), b=cell(2)))
    assert run_experiment(experiment) == 0
    assert len(lab.calls()) == 2
    assert run_experiment(experiment) == 0
    assert len(lab.calls()) == 2  # both taken as they are
    assert lab.compared[0] == lab.compared[1]
    shown = load_experiment(lab.write(a=cell(1, tracker="tensorboard"), b=cell(2)))
    assert run_experiment(shown) == 0
    assert len(lab.calls()) == 2  # a tracker shows a run and changes nothing
    changed = load_experiment(lab.write(a=cell(1), b=cell(3)))
    assert run_experiment(changed) == 0
    assert len(lab.calls()) == 3  # only the one with other settings
    assert run_experiment(changed, fresh=True) == 0
    assert len(lab.calls()) == 5
    assert not set(lab.compared[4]) & set(lab.compared[3])  # fresh runs are the ones compared


def test_an_interrupted_cell_is_resumed_and_a_failing_one_stops_no_other(
    lab: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lab.write(stopped=cell(1, "stops"), failing=cell(2, "fails"), good=cell(3))
    experiment = load_experiment(file)
    assert run_experiment(experiment) == 1
    said = capsys.readouterr().err
    assert "stopped failed with status 3" in said
    assert "failing failed with status 1" in said
    assert "missing in the report: stopped, failing" in said
    assert [folder.name for folder in lab.compared[0]] == ["2"]
    assert run_experiment(experiment) == 1
    assert lab.calls()[3] == ["--resume", str(lab.runs / "0")]
    assert lab.calls()[4] == ["--resume", str(lab.runs / "1")]
    assert len(lab.calls()) == 5  # the good one is complete
    assert [folder.name for folder in lab.compared[1]] == ["0", "2"]


def test_runs_of_other_code_or_settings_do_not_count(
    lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = load_experiment(lab.write(a=cell(1), b=cell(2)))
    run_experiment(experiment)
    assert find_runs(experiment.cells[0]) == (lab.runs / "0", None)
    (lab.runs / "0" / "summary.json").unlink()
    assert find_runs(experiment.cells[0]) == (None, lab.runs / "0")
    monkeypatch.setattr(toolkit.experiment, "code_fingerprint", lambda: "B")
    assert find_runs(experiment.cells[0]) == (None, None)
    assert find_runs(experiment.cells[1]) == (None, None)


def test_an_edit_during_a_run_does_not_lose_the_run(
    lab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs record code A while the experiment sees B afterwards."""
    monkeypatch.setattr(toolkit.experiment, "code_fingerprint", lambda: "B")
    assert run_experiment(load_experiment(lab.write(a=cell(1), b=cell(2)))) == 0
    assert [folder.name for folder in lab.compared[0]] == ["0", "1"]


def test_a_run_older_than_its_data_does_not_count(lab: Any, tmp_path: Path) -> None:
    data = tmp_path / "reviews.csv"
    data.write_text("text,label")
    experiment = load_experiment(lab.write(a=cell(1, freeze=str(data)), b=cell(2)))
    run_experiment(experiment)
    assert find_runs(experiment.cells[0])[0] == lab.runs / "0"
    later = (lab.runs / "0" / "config.yaml").stat().st_mtime + 5
    os.utime(data, (later, later))
    assert find_runs(experiment.cells[0]) == (None, None)
    assert find_runs(experiment.cells[1])[0] == lab.runs / "1"


def test_the_newest_run_counts_whatever_it_is_called(lab: Any) -> None:
    experiment = load_experiment(lab.write(a=cell(1), b=cell(2)))
    named = [*experiment.cells[0].arguments, "--run-id", "zzz"]
    subprocess.run([sys.executable, str(experiment.cells[0].recipe), *named], check=True)
    assert find_runs(experiment.cells[0])[0] == lab.runs / "zzz"
    run_experiment(experiment, fresh=True)
    assert find_runs(experiment.cells[0])[0] == lab.compared[0][0] == lab.runs / "1"


def test_options_reach_the_recipe_as_they_stand_in_the_file(lab: Any) -> None:
    options = {"freeze": None, "layers": [1, 2], "title": "null: x", "train.group_by_length": False}
    experiment = load_experiment(lab.write(a=cell(1, **options), b=cell(2)))
    config: Any = experiment.cells[0].config
    assert config.freeze is None
    assert config.layers == [1, 2]
    assert config.title == "null: x"
    assert config.train.group_by_length is False
    run_experiment(experiment)
    import yaml

    recorded = yaml.safe_load((lab.runs / "0" / "config.yaml").read_text())
    assert recorded["freeze"] is None
    assert recorded["layers"] == [1, 2]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c: c.update(cell={}), "unknown key 'cell'"),
        (lambda c: c.pop("compare"), "the key 'compare' is missing"),
        (lambda c: c["cells"].update(c={"recipe": "none"}), "no such recipe: none.py"),
        (lambda c: c["cells"].update(c={"preset": "x"}), "the key 'recipe' is missing"),
        (lambda c: c["cells"].update(c={"recipe": "fake", "preset": "x"}), "no such preset"),
        (lambda c: c["cells"].update(c=5), "expected recipe, preset, options; found 5"),
        (
            lambda c: c["cells"].update(c={"recipe": "fake", "options": {"sed": 1}}),
            "cell 'c': unknown option '--sed=1'. Did you mean '--seed'?",
        ),
        (lambda c: c["compare"].append("z"), "no cell is called 'z'"),
        (lambda c: c["compare"].append("a"), "'a' stands there 2 times"),
        (lambda c: c["compare"].pop(), "expected at least two cells"),
        (lambda c: c.update(cells=[]), "cells: expected keys and values, found []"),
        (lambda c: c.update(compare=None), "compare: expected a list, found None"),
        (lambda c: c.update(output=None), "output: expected a text"),
        (lambda c: c["cells"]["a"].update(options=[]), "options: expected keys and values"),
        (lambda c: c.update(learning_curve=["z"]), "learning_curve: no cell is called 'z'"),
    ],
)
def test_a_wrong_file_is_refused_before_anything_runs(
    lab: Any, change: Callable[[dict[str, Any]], Any], expected: str
) -> None:
    file = lab.write(a=cell(1), b=cell(2))
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    with pytest.raises(UserError) as caught:
        load_experiment(file)
    assert expected in str(caught.value)
    assert str(file) in str(caught.value)
    assert not lab.calls()


def test_with_one_run_left_there_is_no_report_and_no_traceback(
    lab: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.undo()  # the real comparison
    monkeypatch.chdir(lab.runs.parents[1])
    experiment = load_experiment(lab.write(bad=cell(1, "fails"), good=cell(2)))
    assert run_experiment(experiment) == 1
    assert "nothing to compare" in capsys.readouterr().err
    assert not Path("report").exists()


def test_cells_are_called_in_the_report_as_the_file_says(lab: Any) -> None:
    file = lab.write(a=cell(1) | {"title": "the first"}, b=cell(2))
    assert [c.title for c in load_experiment(file).cells] == ["the first", "b"]
