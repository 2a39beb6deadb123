"""An experiment runs what is missing, resumes what was interrupted, and outlives what fails."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import toolkit.cli
import toolkit.comparison.compare
import toolkit.experiment.session
from toolkit.errors import UserError
from toolkit.experiment import Settings, load_experiment, load_experiments, run_experiments

Cells = Callable[..., dict[str, Any]]


def conduct(*files: Path, **settings: Any) -> int:
    return run_experiments(load_experiments(files), Settings(**settings))


def test_complete_cells_are_not_run_twice(lab: Any, cells: Cells) -> None:
    file = lab.write(a=cells(1), b=cells(2))
    assert conduct(file) == 0
    assert len(lab.calls()) == 2
    assert conduct(file) == 0
    assert len(lab.calls()) == 2  # both taken as they are
    assert lab.compared[0].paths == lab.compared[1].paths
    assert conduct(lab.write(a=cells(1, tracker="tensorboard"), b=cells(2))) == 0
    assert len(lab.calls()) == 2  # a tracker shows a run and changes nothing
    file = lab.write(a=cells(1), b=cells(3))
    assert conduct(file) == 0
    assert len(lab.calls()) == 3  # only the one with other settings
    assert conduct(file, fresh=True) == 0
    assert len(lab.calls()) == 5
    assert not set(lab.compared[4].paths) & set(lab.compared[3].paths)  # the fresh ones count


def test_an_interrupted_cell_is_resumed_and_a_failing_one_stops_no_other(
    lab: Any, cells: Cells, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lab.write(
        stopped=cells(1, "stops"), failing=cells(2, "fails"), good=cells(3), fine=cells(4)
    )
    assert conduct(file) == 1
    said, remarks = capsys.readouterr()
    assert "failing failed with status 1" in remarks  # as soon as it has
    assert "stopped failed with status 3; its run directory is runs/fake/0. To repeat" in said
    repeat = re.search(
        r"^failing failed with status 1;.*alone: accelerate launch (.*)$", said, re.M
    )
    assert repeat is not None
    assert repeat[1] == (
        f"recipes/fake.py --seed=2 --outcome=fails --output_dir={lab.root / 'runs'}"
    )
    assert [folder.name for folder in lab.compared[0].paths] == ["2", "3"]
    assert conduct(file) == 1
    assert lab.calls()[4] == ["--resume", str(lab.runs / "0")]
    assert lab.calls()[5] == ["--resume", str(lab.runs / "1")]
    assert len(lab.calls()) == 6  # the good ones are complete
    assert [folder.name for folder in lab.compared[1].paths] == ["0", "2", "3"]


def test_seeds_come_first_so_that_methods_are_measured_in_turn(lab: Any, cells: Cells) -> None:
    file = lab.save(
        {"seeds": [5, 6], "cells": {"a": cells(freeze="a"),
                                    "b": cells(freeze="b") | {"seeds": [7, 8, 9]}}}
    )  # fmt: skip
    assert conduct(file) == 0
    done = [(call[1][-1], call[-1]) for call in lab.calls()]
    assert [call[1] for call in lab.calls()][:2] == ["--freeze=a", "--freeze=b"]
    assert done == [
        ("a", "--seed=5"), ("b", "--seed=7"), ("a", "--seed=6"), ("b", "--seed=8"),
        ("b", "--seed=9"),
    ]  # fmt: skip
    comparison = lab.compared[0]
    by_method: dict[str, list[str]] = {}
    for path in comparison.paths:
        by_method.setdefault(comparison.methods[path], []).append(path.name)
    assert by_method == {"a": ["0", "2"], "b": ["1", "3", "4"]}
    assert comparison.report.missing == []
    lab.save({"seeds": [5, 10], "cells": {"a": cells(freeze="a"), "b": cells(freeze="b")}})
    assert conduct(file) == 0
    assert [call[-1] for call in lab.calls()[5:]] == ["--seed=5", "--seed=10", "--seed=10"]


def test_a_method_that_lost_a_seed_is_compared_with_the_others_and_the_report_says_so(
    lab: Any, cells: Cells
) -> None:
    failing = cells(outcome="fails", bad_seeds=[1]) | {"title": "the unlucky"}
    lost = cells(outcome="fails", freeze="x")
    content = {"seeds": [0, 1, 2], "cells": {"a": cells(), "b": failing, "c": lost}}
    assert conduct(lab.save(content)) == 1
    comparison = lab.compared[0]
    assert [comparison.methods[path] for path in comparison.paths] == [
        "a", "a", "a", "b", "b",
    ]  # fmt: skip
    command = "accelerate launch recipes/fake.py --outcome=fails"
    missing = comparison.report.missing
    assert missing[0].startswith(
        f"the unlucky, seed 1, failed with status 1. The command that repeats it: {command}"
    )
    assert missing[0].endswith(" --seed=1")
    assert missing[1] == "the unlucky is compared with 2 of its 3 seeds."
    assert [sentence[:9] for sentence in missing[2:5]] == ["c, seed 0", "c, seed 1", "c, seed 2"]
    assert missing[5:] == ["c is missing: all its 3 runs failed."]


@pytest.mark.parametrize(
    ("others", "reason"),
    [({}, "nothing to compare: only good is left"),
     ({"good": "fails"}, "nothing to compare: no method is left")],
)  # fmt: skip
def test_with_less_than_two_methods_left_there_is_no_report_and_no_traceback(
    lab: Any, cells: Cells, capsys: pytest.CaptureFixture[str], others: Any, reason: str
) -> None:
    file = lab.write(bad=cells(1, "fails"), good=cells(2, others.get("good", "complete")))
    assert conduct(file) == 1
    assert f"no report of recipes/experiments/lab.yaml: {reason}" in capsys.readouterr().err
    assert not lab.compared


def test_without_keep_going_the_first_failure_is_the_last_run(
    lab: Any, cells: Cells, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lab.write(a=cells(1), bad=cells(2, "fails"), c=cells(3), d=cells(4))
    summary = lab.root / "summary.json"
    assert conduct(file, keep_going=False, json_file=summary) == 1
    assert len(lab.calls()) == 2
    assert not lab.compared
    states = [run["state"] for run in json.loads(summary.read_text())["experiments"][0]["runs"]]
    assert states == ["run", "failed", "not run", "not run"]
    assert "not all runs were tried" in capsys.readouterr().err


def test_an_edit_during_a_run_does_not_lose_the_run(
    lab: Any, cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs record code A while the experiment sees B afterwards."""
    monkeypatch.setattr("toolkit.experiment.past_runs.code_fingerprint", lambda: "B")
    assert conduct(lab.write(a=cells(1), b=cells(2))) == 0
    assert [folder.name for folder in lab.compared[0].paths] == ["0", "1"]


def test_options_reach_the_recipe_as_they_stand_in_the_file(lab: Any, cells: Cells) -> None:
    options = {"freeze": None, "layers": [1, 2], "title": "null: x", "train.group_by_length": False}
    file = lab.write(a=cells(1, **options), b=cells(2))
    config: Any = load_experiment(file).cells[0].runs[0].config
    assert config.freeze is None
    assert config.layers == [1, 2]
    assert config.title == "null: x"
    assert config.train.group_by_length is False
    assert conduct(file) == 0
    recorded = yaml.safe_load((lab.runs / "0" / "config.yaml").read_text())
    assert recorded["freeze"] is None
    assert recorded["layers"] == [1, 2]
    assert recorded["seed"] == 1


def test_every_run_is_announced_with_the_time_that_is_left(
    lab: Any, cells: Cells, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A clock on which every run takes 10 s of cell a, 50 s of cell b."""
    now = [1000.0]
    start = toolkit.experiment.session.start_recipe

    def timed(module: Any, recipe: Path, arguments: list[str]) -> int:
        now[0] += 10 if "--freeze=a" in arguments else 50
        return start(module, recipe, arguments)

    monkeypatch.setattr(toolkit.experiment.session, "start_recipe", timed)
    monkeypatch.setattr(toolkit.experiment.session.time, "monotonic", lambda: now[0])
    file = lab.save({"seeds": [0, 1, 2], "cells": {"a": cells(freeze="a"), "b": cells(freeze="b")}})
    assert conduct(file) == 0
    lines = [line.rstrip(" ─") for line in capsys.readouterr().out.splitlines() if "──" in line]
    assert [line.removeprefix("── ") for line in lines if line.startswith("── run")] == [
        "run 1/6 · a, seed 0",  # nothing is known
        "run 2/6 · b, seed 0 · 10 s gone, about 50 s left",  # five like the only one so far
        "run 3/6 · a, seed 1 · 1 min gone, about 2 min left",  # 2 x 10 + 2 x 50
        "run 4/6 · b, seed 1 · 1 min 10 s gone, about 1 min 50 s left",
        "run 5/6 · a, seed 2 · 2 min gone, about 1 min left",
        "run 6/6 · b, seed 2 · 2 min 10 s gone, about 50 s left",
    ]
    # The times are known to later commands: one seed is gone, one is new.
    (lab.runs / "5" / "summary.json").unlink()
    file = lab.save({"seeds": [1, 2], "cells": {"a": cells(freeze="a"), "b": cells(freeze="b")}})
    assert conduct(file) == 0
    said = capsys.readouterr().out
    assert f"run 1/4 · a, seed 1 · complete already: {Path('runs/fake/2')}" in said
    assert "── run 4/4 · b, seed 2 · about 50 s left ─" in said
    assert re.search(r"b +│ +2 +│ resumed +│ +50 s", said)


def test_several_files_have_one_summary_and_share_their_runs(
    lab: Any, cells: Cells, capsys: pytest.CaptureFixture[str]
) -> None:
    one = lab.save({"cells": {"a": cells(1), "b": cells(2)}}, "one")
    two = lab.save({"cells": {"c": cells(2), "d": cells(3, "fails"), "e": cells(4)}}, "two")
    summary = lab.root / "summary.json"
    assert conduct(one, two, fresh=True, json_file=summary) == 1
    assert len(lab.calls()) == 4  # c is b, even where all runs are to be fresh
    said = capsys.readouterr().out
    assert len(re.findall(r"^Summary", said, re.M)) == 1
    assert "run 3/5 · c · complete already: runs/fake/1" in said
    found = json.loads(summary.read_text())
    assert found["failed"] == 1
    first, second = found["experiments"]
    assert (first["report"], second["report"]) == ("report/one/report.md", "report/two/report.md")
    assert [run["state"] for run in second["runs"]] == ["reused", "failed", "run"]
    assert second["runs"][1]["status"] == 1
    assert second["runs"][1]["folder"] == str(lab.runs / "2")
    assert second["missing"][-1] == "d is missing: its run failed."
    assert first["missing"] == []
    assert [c.report.folder for c in lab.compared] == [Path("report/one"), Path("report/two")]


def test_a_comparison_that_is_refused_costs_no_other_report(
    lab: Any, cells: Cells, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compare = toolkit.comparison.compare.compare_runs

    def refuse_once(paths: Any, **named: Any) -> Any:
        monkeypatch.setattr("toolkit.comparison.compare.compare_runs", compare)
        raise UserError("other test examples")

    monkeypatch.setattr("toolkit.comparison.compare.compare_runs", refuse_once)
    one = lab.save({"cells": {"a": cells(1), "b": cells(2)}}, "one")
    two = lab.save({"cells": {"a": cells(1), "b": cells(3)}}, "two")
    assert conduct(one, two) == 1
    assert "no report of recipes/experiments/one.yaml: other test" in capsys.readouterr().err
    assert [c.report.folder for c in lab.compared] == [Path("report/two")]


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("whom", ["group", "parent alone"])
def test_ctrl_c_stops_and_says_how_to_go_on(lab: Any, cells: Cells, whom: str) -> None:
    file = lab.write(a=cells(1), slow=cells(2, "waits"), c=cells(3))
    arguments = ["experiment", str(file), "--no-examples", "--fresh", "--json", "summary.json"]

    def interrupted() -> None:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with (lab.root / "log").open("w", buffering=1) as log:
            sys.stdout = sys.stderr = log
            toolkit.cli.main(arguments)

    process = multiprocessing.get_context("fork").Process(target=interrupted)
    process.start()
    assert process.pid is not None
    wait_for(lab.root / "runs" / "waiting")
    (os.killpg if whom == "group" else os.kill)(process.pid, signal.SIGINT)
    process.join(30)
    said = (lab.root / "log").read_text()
    assert process.exitcode == 130, said
    command = f"toolkit experiment {file} --no-examples --json summary.json"
    assert command in " ".join(said.split())
    assert "Traceback" not in said
    runs = json.loads((lab.root / "summary.json").read_text())["experiments"][0]["runs"]
    assert [run["state"] for run in runs] == ["run", "interrupted", "not run"]
    assert runs[1]["folder"] == str(lab.runs / "1")
    # The same command goes on where this one stopped.
    assert run_experiments([load_experiment(file)]) == 0
    assert lab.calls()[2] == ["--resume", str(lab.runs / "1")]
    assert len(lab.calls()) == 4


def test_a_report_alone_runs_nothing_and_takes_runs_of_any_code(
    lab: Any, cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lab.write(a=cells(1), b=cells(2), c=cells(3))
    assert conduct(file) == 0
    monkeypatch.setattr("toolkit.experiment.past_runs.code_fingerprint", lambda: "another")
    file = lab.write(a=cells(1), b=cells(2), c=cells(4))
    assert conduct(file, report_only=True) == 1
    assert len(lab.calls()) == 3
    assert [path.name for path in lab.compared[1].paths] == ["0", "1"]
    missing = lab.compared[1].report.missing
    assert missing[0].startswith("c has no complete run. The command that repeats it: accelerate")
    assert missing[1] == "c is missing: its run is not there."


def test_a_run_that_cannot_be_read_costs_no_other(lab: Any, cells: Cells) -> None:
    file = lab.write(a=cells(1), b=cells(2), c=cells(3))
    assert conduct(file) == 0
    (lab.compared[0].paths[1] / "summary.json").write_text("damaged")
    assert conduct(file, report_only=True) == 1
    assert [path.name for path in lab.compared[1].paths] == ["0", "2"]
    missing = lab.compared[1].report.missing
    assert missing[0].startswith(
        "b has a run that cannot be compared: 1 was cut off. The command that repeats it:"
    )
    assert missing[1] == "b is missing: its run cannot be compared."
    assert (lab.runs / "1").is_dir()  # a report moves nothing


def test_a_damaged_run_is_moved_aside_and_done_again(
    lab: Any, cells: Cells, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lab.write(a=cells(1), b=cells(2), c=cells(3))
    assert conduct(file) == 0
    (lab.runs / "1" / "summary.json").write_text("damaged")
    capsys.readouterr()
    assert conduct(file) == 0
    said, remarks = capsys.readouterr()
    assert len(lab.calls()) == 4
    assert (lab.runs / "damaged" / "1" / "summary.json").read_text() == "damaged"
    assert "runs/fake/1 is damaged, so it is run again; what is left of it is kept" in remarks
    assert "runs/fake/damaged/1. 1 was cut off." in remarks
    assert "because runs/fake/1 is damaged: 1 was cut off." in said
    assert lab.compared[1].report.missing == []
    new = lab.compared[1].paths[1]
    (new / "summary.json").write_text("damaged")
    assert conduct(file) == 0
    kept = sorted(folder.name for folder in (lab.runs / "damaged").iterdir())
    assert len(kept) == 2  # nothing is written over
    assert conduct(file) == 0
    assert len(lab.calls()) == 5


def test_a_value_that_is_no_number_costs_its_run_alone(
    lab: Any, cells: Cells, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lab.write(a=cells(1), b=cells(2), c=cells(3))
    assert conduct(file) == 0
    (lab.compared[0].paths[1] / "summary.json").write_text("NaN")
    assert conduct(file) == 1
    assert len(lab.calls()) == 3  # done again it would come to the same
    assert [path.name for path in lab.compared[1].paths] == ["0", "2"]
    missing = lab.compared[1].report.missing
    assert missing[0].startswith("b has a run that cannot be compared: it is NaN. The command")
    assert missing[1] == "b is missing: its run cannot be compared."
    assert "warning: b: it is NaN." in capsys.readouterr().err


def test_every_run_is_read_once_for_a_report(lab: Any, cells: Cells) -> None:
    file = lab.save({"seeds": [0, 1], "cells": {"a": cells(freeze="a"), "b": cells(freeze="b")}})
    assert conduct(file) == 0
    assert sorted(folder.name for folder in lab.reads) == ["0", "1", "2", "3"]
