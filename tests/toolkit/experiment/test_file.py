"""Experiment files: what they mean, and what is refused before anything runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolkit
from toolkit.errors import UserError
from toolkit.experiment import load_experiment, load_experiments

Cells = Callable[..., dict[str, Any]]


def test_cells_are_called_in_the_report_as_the_file_says(lab: Any, cells: Cells) -> None:
    file = lab.write(a=cells(1) | {"title": "the first"}, b=cells(2))
    experiment = load_experiment(file)
    assert [c.title for c in experiment.cells] == ["the first", "b"]
    assert experiment.title == "lab"
    assert not experiment.seeded


def test_every_cell_has_a_run_per_seed(lab: Any, cells: Cells) -> None:
    matrix = {"vary": {"freeze": ["x", "y"]}, "seeds": [9]}
    content = {
        "seeds": [0, 1],
        "cells": {"a": cells(), "b": cells(freeze="z") | {"seeds": [3, 4, 5]}},
        "matrix": matrix,
    }
    experiment = load_experiment(lab.save(content))
    found = {cell.name: [run.config.seed for run in cell.runs] for cell in experiment.cells}
    assert found == {"a": [0, 1], "b": [3, 4, 5], "x": [9], "y": [9]}
    assert experiment.compare == ["a", "b", "x", "y"]  # all, where the file does not say
    assert experiment.seeded
    assert [run.label for run in experiment.cells[0].runs] == ["a, seed 0", "a, seed 1"]
    for cell in experiment.cells:
        for run in cell.runs:
            assert run.arguments[-1] == f"--seed={run.config.seed}"


def test_compare_and_learning_curve_name_cells_of_matrices(lab: Any, cells: Cells) -> None:
    content = {
        "cells": {"plain": cells(1)},
        "matrix": [
            {"recipe": "other", "vary": {"freeze": ["x", "y"]}, "name": "other {freeze}"},
            {"preset": "demo", "vary": {"train.epochs": [1, 2]}},
        ],
        "compare": ["other x", "plain"],
        "learning_curve": [1, "2"],
        "force": True,
        "target": 0.8,
        "note": "Read with care.",
        "predictions": {"theirs": "theirs.csv"},
    }
    (lab.root / "theirs.csv").write_text("id,prediction")
    experiment = load_experiment(lab.save(content))
    assert [cell.name for cell in experiment.cells] == ["plain", "other x", "other y", "1", "2"]
    assert [cell.runs[0].recipe.stem for cell in experiment.cells] == [
        "fake", "other", "other", "fake", "fake",
    ]  # fmt: skip
    assert experiment.compare == ["other x", "plain"]
    assert experiment.learning_curve == ["1", "2"]
    assert experiment.cells[3].runs[0].config.freeze == "demo"  # type: ignore[attr-defined]
    assert experiment.cells[3].runs[0].config.train.epochs == 1
    assert (experiment.force, experiment.target, experiment.note) == (True, 0.8, "Read with care.")
    assert experiment.predictions == {"theirs": Path("theirs.csv")}


def cells_of(content: dict[str, Any]) -> Any:
    return content["cells"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c: c.update(cell={}), "unknown key 'cell'"),
        (lambda c: c.pop("output"), "the key 'output' is missing"),
        (lambda c: c.pop("cells"), "expected 'cells' or 'matrix' with at least one cell in it"),
        (lambda c: cells_of(c).update(c={"recipe": "none"}), "no such recipe: none.py"),
        (lambda c: cells_of(c).update(c={"preset": "x"}), "the key 'recipe' is missing"),
        (lambda c: cells_of(c).update(c={"recipe": "fake", "preset": "x"}), "no such preset"),
        (lambda c: cells_of(c).update(c=5), "expected recipe, preset, options; found 5"),
        (
            lambda c: cells_of(c).update(c={"recipe": "fake", "options": {"sed": 1}}),
            "cell 'c': unknown option '--sed=1'. Did you mean '--seed'?",
        ),
        (lambda c: c["compare"].append("z"), "compare: no cell is called 'z'"),
        (lambda c: c["compare"].append("a"), "compare: 'a' stands there 2 times"),
        (lambda c: c["compare"].pop(), "compare: expected at least two cells, found ['a']"),
        (lambda c: c.update(cells=[]), "cells: expected keys and values, found []"),
        (lambda c: c.update(compare=None), "compare: expected a list, found None"),
        (lambda c: c.update(output=None), "output: expected a text"),
        (lambda c: cells_of(c)["a"].update(options=[]), "options: expected keys and values"),
        (lambda c: c.update(learning_curve=["z"]), "learning_curve: no cell is called 'z'"),
        (
            lambda c: c.pop("compare") and c.update(learning_curve=["a"]),
            "the key 'compare' is missing: beside a learning_curve it says",
        ),
        (lambda c: c.update(seeds=[]), "seeds: expected at least one"),
        (lambda c: c.update(seeds=[1, 1]), "seeds: 1 stands there 2 times"),
        (lambda c: c.update(seeds=[-1]), "seeds: expected whole numbers from 0 on, found -1"),
        (lambda c: c.update(seeds=[2**32]), "expected whole numbers from 0 on, found 4294967296"),
        (lambda c: c.update(seeds=[True]), "seeds: expected whole numbers from 0 on, found True"),
        (lambda c: c.update(seeds=3), "seeds: expected a list, found 3"),
        (lambda c: cells_of(c)["a"].update(seeds=["x"]), "cell 'a': seeds: expected whole"),
        (
            lambda c: c.update(seeds=[0, 1]),
            "cell 'a': options: seed 1 stands beside seeds [0, 1]; leave one out",
        ),
        (
            lambda c: (cells_of(c)["a"].update(seeds=[0, 1]), cells_of(c)["a"]["options"].update(
                {"run-id": "x"}), cells_of(c)["a"]["options"].pop("seed")),
            "cell 'a': run_id: 2 runs cannot all be 'x'",
        ),
        (
            lambda c: cells_of(c)["b"]["options"].update({"dry-run": True}),
            "cell 'b': options: with 'dry-run' there is no run to compare",
        ),
        (lambda c: cells_of(c)["b"]["options"].update(resume="x"), "there is no run to compare"),
        (
            lambda c: cells_of(c)["b"]["options"].update(seed=1),
            "cells 'a' and 'b' have the same settings: a method cannot be its own rival",
        ),
        (lambda c: cells_of(c)["b"].update(title="a"), "title: 2 methods are called 'a'"),
        (
            lambda c: c.update(matrix={"recipe": "fake", "vary": {"freeze": ["a"]}}),
            "matrix: cell 'a': there is a cell of this name before",
        ),
        (
            lambda c: c.update(matrix=[{"recipe": "fake", "vary": {"frieze": ["c"]}}]),
            "matrix 1: cell 'c': unknown option '--frieze=c'. Did you mean '--freeze'?",
        ),
        (
            lambda c: c.update(matrix={"recipe": "fake", "vary": {"train.epochs": ["two"]}}),
            "matrix: cell 'two': --train.epochs two: expected a whole number",
        ),
        (lambda c: c.update(matrix=[5]), "matrix 1: expected recipe, options, vary; found 5"),
        (lambda c: c.update(matrix=5), "matrix: expected keys and values, or a list of such"),
        (lambda c: c.update(force=1), "force: expected true or false, found 1"),
        (lambda c: c.update(target=True), "target: expected a number, found True"),
        (lambda c: c.update(target="0.8"), "target: expected a number, found '0.8'"),
        (lambda c: c.update(note=5), "note: expected a text, found 5"),
        (
            lambda c: c.update(predictions={"theirs": "no.csv"}),
            "predictions: 'theirs': no such file: no.csv",
        ),
        (
            lambda c: c.update(predictions={"a": str(Path(sys.executable))}),
            "title: 2 methods are called 'a'",
        ),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_before_anything_runs(
    lab: Any, cells: Cells, change: Callable[[dict[str, Any]], Any], expected: str
) -> None:
    file = lab.write(a=cells(1), b=cells(2))
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    with pytest.raises(UserError) as caught:
        load_experiment(file)
    assert expected in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_date_is_no_option(lab: Any, cells: Cells) -> None:
    file = lab.write(a=cells(1), b=cells(2, freeze="DATE"))
    file.write_text(file.read_text().replace('"DATE"', "2020-01-01"))
    with pytest.raises(UserError, match="cell 'b': options: freeze: 2020-01-01 is read as a date"):
        load_experiment(file)


def test_one_cell_and_somebody_elses_predictions_are_two_methods(lab: Any, cells: Cells) -> None:
    (lab.root / "theirs.csv").write_text("id,prediction")
    content = {"cells": {"a": cells(1)}, "predictions": {"theirs": "theirs.csv"}}
    assert load_experiment(lab.save(content)).compare == ["a"]


def test_two_files_cannot_share_a_report(lab: Any, cells: Cells) -> None:
    one = lab.save({"cells": {"a": cells(1), "b": cells(2)}, "output": "same"}, "one")
    two = lab.save({"cells": {"a": cells(1), "b": cells(3)}, "output": "./same"}, "two")
    with pytest.raises(UserError, match="would both write their report to same"):
        load_experiments([one, two])
    with pytest.raises(UserError, match="would both write their report"):
        load_experiments([one, one])


def test_a_file_may_lie_anywhere(lab: Any) -> None:
    """Its recipes are then those of `recipes/` here, or this project's own."""
    cells = {"a": {"recipe": "fake"}, "b": {"recipe": "tfidf_sentiment"}}
    (lab.root / "mine" / "deep").mkdir(parents=True)
    file = lab.root / "mine" / "deep" / "e.yaml"
    file.write_text(json.dumps({"title": "t", "output": "o", "cells": cells}))
    ours, projects = load_experiment(file).cells
    assert ours.runs[0].recipe == lab.root / "recipes" / "fake.py"
    own = Path(toolkit.__file__).parents[1] / "recipes" / "tfidf_sentiment.py"
    assert projects.runs[0].recipe == own
