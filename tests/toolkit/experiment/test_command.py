"""The command line of `toolkit experiment`: a plan without running, and what is refused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolkit.cli
from toolkit.experiment import load_experiment, run_experiments

Cells = Callable[..., dict[str, Any]]


def status_of(*argv: object) -> int:
    with pytest.raises(SystemExit) as caught:
        toolkit.cli.main(["experiment", *map(str, argv)])
    return int(caught.value.code or 0)


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    lab: Any, cells: Cells, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = cells(outcome="stops", bad_seeds=[1])
    content = {"seeds": [0, 1], "cells": {"a": cells(), "b": stopped, "c": cells(freeze="c")}}
    run_experiments([load_experiment(lab.save({**content, "seeds": [1]}))])
    for number, seconds in ((0, 30), (2, 70)):
        (lab.runs / f"{number}/wall_time.json").write_text(json.dumps({"seconds": seconds}))
    before = sorted(lab.root.rglob("*"))
    capsys.readouterr()
    assert status_of(lab.save(content), "--dry-run", "--json", "plan.json") == 0
    said = capsys.readouterr().out
    assert len(lab.calls()) == 3
    assert [file for file in sorted(lab.root.rglob("*")) if file not in before] == [
        lab.root / "plan.json"
    ]
    for cell, seed, state, seconds in (
        ("a", 0, "will run", "about 30 s"), ("b", 0, "will run", "about 50 s"),
        ("c", 0, "will run", "about 1 min 10 s"), ("a", 1, "complete", ""),
        ("b", 1, "will be resumed", "about 50 s"), ("c", 1, "complete", ""),
    ):  # fmt: skip
        assert re.search(rf"│ {cell} +│ +{seed} +│ {state} +│ +{seconds} +│", said), (cell, seed)
    # 30 + 70 of their own cells, twice 50, the mean of the recipe, for b
    assert "4 to run, about 3 min" in said
    plan = json.loads((lab.root / "plan.json").read_text())
    assert plan["dry_run"] is True
    runs = plan["experiments"][0]["runs"]
    assert [run["estimated_seconds"] for run in runs] == [30, 50, 70, 0, 50, 0]
    assert runs[3]["folder"] == str(lab.runs / "0")
    assert runs[0]["folder"] is None
    assert runs[0]["command"].startswith("accelerate launch recipes/fake.py --outcome=complete")
    assert status_of(lab.save(content), "--dry-run", "--fresh") == 0
    assert "6 to run" in capsys.readouterr().out


def test_a_dry_run_says_why_something_is_run_again(
    lab: Any, cells: Cells, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lab.root / "reviews.csv"
    data.write_text("text,label")
    content = {"seeds": [1], "cells": {
        "fine": cells(), "broken": cells(freeze="b"), "data": cells(freeze=str(data)),
        "other": cells(**{"freeze": "o", "train.epochs": 2}),
        "stopped": cells(outcome="stops", freeze="s"),
    }}  # fmt: skip
    run_experiments([load_experiment(lab.save(content))])
    (lab.runs / "1" / "summary.json").write_text("damaged")
    later = (lab.runs / "2" / "config.yaml").stat().st_mtime + 5
    os.utime(data, (later, later))
    content["cells"]["other"]["options"]["train.epochs"] = 3
    content["cells"]["new"] = cells(freeze="n", layers=[1], **{"train.batch_size": 7})
    file = lab.save(content)

    def plan() -> dict[str, tuple[str, str | None]]:
        assert status_of(file, "--dry-run", "--json", "plan.json") == 0
        runs = json.loads((lab.root / "plan.json").read_text())["experiments"][0]["runs"]
        return {run["cell"]: (run["state"], run["why"]) for run in runs}

    assert plan() == {
        "fine": ("reused", None),
        "broken": ("run", "runs/fake/1 is damaged: 1 was cut off."),
        "data": ("run", f"{data} has changed since runs/fake/2"),
        "other": ("run", "settings have changed since runs/fake/3: train.epochs 3 instead of 2"),
        "stopped": ("resumed", "runs/fake/4 was interrupted, or failed"),
        "new": ("run", "not run yet"),
    }
    said = capsys.readouterr().out
    for cell, state in (
        ("fine", "complete"), ("broken", "runs again"), ("data", "runs again"),
        ("other", "runs again"), ("stopped", "will be resumed"), ("new", "will run"),
    ):  # fmt: skip
        assert re.search(rf"│ {cell} +│ +1 +│ {state} +│", said), cell
    assert (lab.runs / "1").is_dir()  # nothing is moved
    monkeypatch.setattr("toolkit.experiment.past_runs.code_fingerprint", lambda: "B")
    again = plan()
    assert again["fine"] == ("run", "the code has changed since runs/fake/0")
    assert again["new"] == ("run", "not run yet")


def test_where_nothing_is_known_nothing_is_estimated(
    lab: Any, cells: Cells, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(lab.write(a=cells(1), b=cells(2)), "--dry-run") == 0
    said = capsys.readouterr().out
    assert "2 to run; how long that takes is not known" in said
    assert "about" not in said


def test_a_plan_reuses_what_an_earlier_file_runs(
    lab: Any, cells: Cells, capsys: pytest.CaptureFixture[str]
) -> None:
    one = lab.save({"cells": {"a": cells(1), "b": cells(2)}}, "one")
    two = lab.save({"cells": {"c": cells(2), "d": cells(3)}}, "two")
    assert status_of(one, two, "--dry-run") == 0
    said = capsys.readouterr().out
    assert "3 to run" in said
    assert re.search(r"two.yaml +│ c +│ +2 +│ complete", said)


def test_what_the_report_is_given(lab: Any, cells: Cells) -> None:
    (lab.root / "theirs.csv").write_text("id,prediction")
    content = {
        "title": "A title", "cells": {"a": cells(1) | {"title": "A"}, "b": cells(2), "c": cells(3)},
        "compare": ["b", "a"], "learning_curve": ["c"], "force": True, "target": 3,
        "predictions": {"theirs": "theirs.csv"}, "note": "Read with care.",
    }  # fmt: skip
    assert status_of(lab.save(content), "--no-examples", "--output", "elsewhere") == 0
    (comparison,) = lab.compared
    assert [path.name for path in comparison.paths] == ["1", "0"]
    assert [path.name for path in comparison.learning_curve] == ["2"]
    assert {path.name: title for path, title in comparison.titles.items()} == {
        "0": "A", "1": "b", "2": "c",
    }  # fmt: skip
    assert comparison.methods is None  # no seeds: every run is a row of its own
    assert (comparison.force, comparison.target) == (True, 3)
    assert comparison.predictions == {"theirs": Path("theirs.csv")}
    report = comparison.report
    assert report.command == (
        "toolkit experiment recipes/experiments/lab.yaml --output elsewhere --no-examples"
    )
    assert (report.title, report.show_examples, report.note) == (
        "A title",
        False,
        "Read with care.",
    )
    assert report.folder == Path("elsewhere")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--output", "x"), "--output x: 2 files have a report each"),
        (("--json", "no/such/folder.json"), "--json no/such/folder.json: expected a file in a"),
        (("--json", "."), "--json .: expected a file in a folder"),
    ],
)
def test_what_is_refused(
    lab: Any, cells: Cells, capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...], expected: str,
) -> None:  # fmt: skip
    one = lab.save({"cells": {"a": cells(1), "b": cells(2)}}, "one")
    two = lab.save({"cells": {"a": cells(1), "b": cells(3)}}, "two")
    assert status_of(one, two, *arguments) == 2
    assert expected in capsys.readouterr().err
    assert not lab.calls()


def test_a_mistake_in_the_last_file_is_found_before_the_first_is_run(
    lab: Any, cells: Cells, capsys: pytest.CaptureFixture[str]
) -> None:
    one = lab.save({"cells": {"a": cells(1), "b": cells(2)}}, "one")
    two = lab.save({"cells": {"a": cells(1), "b": cells(3, frieze="x")}}, "two")
    assert status_of(one, two) == 2
    assert f"{two}: cell 'b': unknown option '--frieze=x'" in capsys.readouterr().err
    assert not lab.calls()
